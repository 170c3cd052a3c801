/** The file system in memory of Linux. Elsewhere it does not exist. */
export const SHARED_MEMORY: string;
/** See memory-folder.mjs. */
export function memoryFolder(): string;
