/** See memory-folder.mjs. */
export function memoryFolder(): string;
