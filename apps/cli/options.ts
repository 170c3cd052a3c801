/** Options of a command as commander has read them, those of all commands included. */
export type Options = Record<string, unknown>;
