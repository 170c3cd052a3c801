export function compileCheck(schema: Readonly<Record<string, unknown>>): (input: unknown) => string[];

export function cut(text: string, length: number): string;
