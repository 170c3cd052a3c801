import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { chmod, open, rm, rmdir, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A disk of its own that a test can fill: a tmpfs, which only root may mount, and not everywhere. */
export interface SmallDisk {
  path: string;
  /** Until not one byte more fits. What is being freed meanwhile is taken by whoever comes first: fill again. */
  fill(): Promise<void>;
  free(): Promise<void>;
  /** Of any use by then, it is gone from the tree at once, and for good with the last that has a file of it open. */
  remove(): Promise<void>;
}

const mount = (path: string, size: string): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', path]).status === 0;
const unmount = (path: string): boolean => spawnSync('umount', ['-l', path]).status === 0;

/** `describe`, skipped, and loudly so, where no disk can be mounted: not even in CI is that everywhere allowed. */
export function describeWithSmallDisk(name: string, suite: () => void): void {
  if (canMount()) return describe(name, suite);
  const text = `SKIPPED: ${name}. This machine does not let us mount a tmpfs (are we root, with CAP_SYS_ADMIN?).`;
  const line = '!'.repeat(text.length);
  process.stderr.write(`\n${line}\n${text}\n${line}\n`);
  describe.skip(name, suite);
}

function canMount(): boolean {
  const path = mkdtempSync(join(tmpdir(), 'spool-mount-'));
  try {
    return mount(path, '1m') && unmount(path);
  } finally {
    rmdirSync(path);
  }
}

const BLOCKS = [1024 * 1024, 4096, 1];

export async function mountSmallDisk(size: string): Promise<SmallDisk> {
  const path = mkdtempSync(join(tmpdir(), 'spool-disk-'));
  if (!mount(path, size)) throw new Error('a tmpfs cannot be mounted: use describeWithSmallDisk');
  await chmod(path, 0o777);
  const ballast = join(path, 'ballast');
  return {
    path,
    fill: async () => {
      const file = await open(ballast, 'a');
      try {
        for (const size of BLOCKS) while (await hasRoom(() => file.appendFile(Buffer.alloc(size))));
      } finally {
        await file.close();
      }
    },
    free: async () => {
      await truncate(ballast).catch(() => undefined);
      await rm(ballast, { force: true });
    },
    remove: async () => {
      unmount(path);
      await rmdir(path);
    },
  };
}

async function hasRoom(write: () => Promise<void>): Promise<boolean> {
  try {
    await write();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return false;
    throw error;
  }
}
