import type { Pool } from 'pg';
import type { WorkerSandbox } from '#agents';
import type { DoctorCheck } from '#contract';
import type { Config } from '#platform';

type Found = Pick<DoctorCheck, 'status' | 'message'>;

interface Row {
  holder: string;
  /** Null for a worker of the previous release. */
  sandbox: WorkerSandbox | null;
}

/** Shows what the live workers found at their start, because this process may run on a machine with other programs. */
export async function checkSandbox(
  pool: Pool,
  { TOOL_SERVER_COMMANDS }: Pick<Config, 'TOOL_SERVER_COMMANDS'>,
): Promise<Found> {
  const { rows } = await pool.query<Row>(
    // Also before the migration that adds the column `sandbox`.
    `select holder, to_jsonb(workers) -> 'sandbox' as sandbox from workers where seen_at > now() - interval '10 seconds' order by holder`,
  );
  const isAllowed = TOOL_SERVER_COMMANDS !== undefined;
  const problems = rows.flatMap(({ holder, sandbox }) =>
    problemsOf(sandbox, isAllowed).map((problem) => `Worker ${holder}: ${problem}`),
  );
  if (problems.length > 0) return { status: 'warning', message: problems.join(' ') };
  const isolations = new Set(rows.flatMap(({ sandbox }) => sandbox?.isolation ?? []));
  if (isolations.size > 0) return ok(`Programs of tool servers run with ${[...isolations].join(' and ')}.`);
  if (!isAllowed) return ok('Starting programs as tool servers is disabled.');
  return { status: 'warning', message: 'No worker is alive, so the sandbox of tool servers is unknown.' };
}

const ok = (message: string): Found => ({ status: 'ok', message });

function problemsOf(sandbox: WorkerSandbox | null, isAllowed: boolean): string[] {
  if (sandbox === null) return isAllowed ? ['It runs an older release, which does not report its sandbox.'] : [];
  const { isolation, refused, warnings } = sandbox;
  if (isolation === null) return isAllowed ? ['It cannot start programs; set TOOL_SERVER_COMMANDS on it too.'] : [];
  return refused === null ? warnings : [`It starts no tool servers. ${refused}`];
}
