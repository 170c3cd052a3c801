import { accessSync, constants, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';

const SHARED_MEMORY = '/dev/shm';
const ENOUGH_BYTES = 8 * 1024 ** 3;

/**
 * Returns a folder for the files of a test run's PostgreSQL: in memory where there is enough, else the folder of temporary files.
 * On a disk, creating and dropping a database for each spec file takes three times the CPU time.
 */
export function memoryFolder() {
  try {
    accessSync(SHARED_MEMORY, constants.W_OK);
    const { bavail, bsize } = statfsSync(SHARED_MEMORY);
    return bavail * bsize >= ENOUGH_BYTES ? SHARED_MEMORY : tmpdir();
  } catch {
    return tmpdir();
  }
}
