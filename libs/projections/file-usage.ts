import type { ClientBase } from 'pg';
import { ADVISORY_LOCKS, namedStatement } from '#platform';
import { inSnapshot } from './isolation.ts';

const COUNT_PAGE = namedStatement(import.meta.dirname, 'count-page-of-files.sql');
const READ_USAGE = namedStatement(import.meta.dirname, 'read-usage.sql');
const CORRECT_USAGE = namedStatement(import.meta.dirname, 'correct-usage.sql');

/** Files counted in one statement. Each statement then takes far less than the statement timeout. */
const PAGE = 50_000;

/** An organization whose counter of files is wrong. */
export interface UsageDrift {
  organizationId: string;
  files: number;
  bytes: number;
  actualFiles: number;
  actualBytes: number;
}

interface Usage {
  organizationId: string;
  files: number;
  bytes: number;
}

/**
 * Returns the organizations whose file counters are wrong, in the order of their ids. Is correct also while files are added
 * and removed: one transaction changes a file and its counter, and all reads share one snapshot.
 */
export async function findUsageDrift(client: ClientBase, pageSize = PAGE): Promise<UsageDrift[]> {
  return inSnapshot(client, async () => {
    const actual = await countFiles(client, pageSize);
    const { rows } = await client.query<Usage>(READ_USAGE);
    const counted = new Map(rows.map((row) => [row.organizationId, row]));
    const ids = [...new Set([...actual.keys(), ...counted.keys()])].toSorted();
    const compared = ids.map((organizationId): UsageDrift => {
      const { files, bytes } = counted.get(organizationId) ?? NONE;
      const { files: actualFiles, bytes: actualBytes } = actual.get(organizationId) ?? NONE;
      return { organizationId, files, bytes, actualFiles, actualBytes };
    });
    return compared.filter(
      ({ files, bytes, actualFiles, actualBytes }) => files !== actualFiles || bytes !== actualBytes,
    );
  });
}

const NONE = { files: 0, bytes: 0 };

/** Counts the files of each organization. Skips files without an organization: they are not counted yet, or no longer. */
async function countFiles(client: ClientBase, pageSize: number): Promise<Map<string, Omit<Usage, 'organizationId'>>> {
  interface Row extends Omit<Usage, 'organizationId'> {
    organizationId: string | null;
    last: string;
  }
  const usage = new Map<string, Omit<Usage, 'organizationId'>>();
  for (let after: string | undefined = ''; after !== undefined;) {
    const { rows }: { rows: Row[] } = await client.query<Row>({ ...COUNT_PAGE, values: [after, pageSize] });
    for (const { organizationId, files, bytes } of rows) {
      if (organizationId === null) continue;
      const sum = usage.get(organizationId) ?? NONE;
      usage.set(organizationId, { files: sum.files + files, bytes: sum.bytes + bytes });
    }
    after = rows[0]?.last;
  }
  return usage;
}

/**
 * Corrects wrong counters and returns their number; 0 while another repair is in progress. Adds the difference instead of
 * setting the sum, because later changes of files have changed the counter too. No writer has to wait.
 */
export async function repairUsage(client: ClientBase, pageSize = PAGE): Promise<number> {
  const { rows } = await client.query<{ isAlone: boolean }>('select pg_try_advisory_lock($1) as "isAlone"', [
    ADVISORY_LOCKS.fileUsage,
  ]);
  if (!rows[0]!.isAlone) return 0;
  try {
    const drifted = await findUsageDrift(client, pageSize);
    for (const { organizationId, files, bytes, actualFiles, actualBytes } of drifted) {
      await client.query({ ...CORRECT_USAGE, values: [organizationId, actualFiles - files, actualBytes - bytes] });
    }
    return drifted.length;
  } finally {
    // If the connection is lost, the server releases the lock.
    await client.query('select pg_advisory_unlock($1)', [ADVISORY_LOCKS.fileUsage]).catch(() => undefined);
  }
}
