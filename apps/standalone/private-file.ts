import { chmod, rename, writeFile } from 'node:fs/promises';

/** Writes a file with secrets: never readable by others, never half-written. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const unfinished = `${file}.${process.pid}`;
  await writeFile(unfinished, text, { mode: 0o600 });
  await chmod(unfinished, 0o600); // the mode above does not apply to an existing file
  await rename(unfinished, file);
}
