import type { Pool } from 'pg';
import { BlobStoreUnavailable, verifyFiles, type BlobKeeper, type FileStore, type VerifyFilesReport } from '#files';
import { rebuild, verify, type RebuildReport, type VerifyReport } from '#projections';
import { writeEntry } from './audit.ts';
import type { SomeHandlers } from './handlers.ts';
import { linesOf } from './progress-lines.ts';
import { AdminRefused } from './refused.ts';

export interface CheckHandlerParts {
  pool: Pool;
  files: FileStore;
  blobs: BlobKeeper;
}

/** Handles the long checks of all stored data, and the repair of derived rows. */
export function checkHandlers(parts: CheckHandlerParts): SomeHandlers<'verify' | 'verifyFiles' | 'rebuildProjections'> {
  const { pool } = parts;
  const alone = oneAtATime();
  return {
    verify: async function* ({ body: { from } }, { signal }) {
      yield* alone('verification', signal, () =>
        linesOf(
          (report: VerifyReport, done) => ({ ...report, done, findings: done ? report.findings : [] }),
          (onProgress) => verify(pool, { from, onProgress }),
          signal,
        ),
      );
    },

    verifyFiles: async function* ({ body: { from, hash } }, { signal }) {
      yield* alone('verification of files', signal, () =>
        linesOf(
          (report: VerifyFilesReport, done) => ({ ...report, done, findings: done ? report.findings : [] }),
          (onProgress) => verifyFiles(parts, { from, hash, onProgress }).catch(refuseStorageUnavailable),
          signal,
        ),
      );
    },

    rebuildProjections: async function* ({ body: { from } }, { actor, signal }) {
      yield* alone('rebuild', signal, async function* () {
        await writeEntry(pool, actor, { action: 'projections.rebuilt', details: { from: from ?? null } });
        yield* linesOf(
          (report: RebuildReport, done) => ({ ...report, done }),
          (onProgress) => rebuild(pool, { from, onProgress }),
          signal,
        );
      });
    },
  };
}

function refuseStorageUnavailable(error: unknown): never {
  if (!(error instanceof BlobStoreUnavailable)) throw error;
  throw new AdminRefused('conflict', error.message);
}

/**
 * Runs one check of each kind at a time in a process, because each holds a connection of the pool for long. A check ends at its
 * next report if its caller has gone, and the next check waits for that. Throws AdminRefused.
 */
function oneAtATime() {
  const underWay = new Map<string, { signal: AbortSignal; ended: Promise<void> }>();
  return async function* <Line>(
    kind: string,
    signal: AbortSignal,
    lines: () => AsyncIterable<Line>,
  ): AsyncGenerator<Line> {
    for (let before = underWay.get(kind); before !== undefined; before = underWay.get(kind)) {
      if (!before.signal.aborted)
        throw new AdminRefused('conflict', `A ${kind} is already running in this process; wait until it ends.`);
      await before.ended;
    }
    let end!: () => void;
    const ended = new Promise<void>((resolve) => (end = resolve));
    underWay.set(kind, { signal, ended });
    try {
      yield* lines();
    } finally {
      underWay.delete(kind);
      end();
    }
  };
}
