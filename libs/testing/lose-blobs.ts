import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Deletes all blobs of a folder. `incoming/` stays: without it the store says that it is unavailable (DiskBlobStore). */
export async function loseBlobs(folder: string): Promise<void> {
  const names = (await readdir(folder)).filter((name) => name !== 'incoming');
  await Promise.all(names.map((name) => rm(join(folder, name), { recursive: true })));
}
