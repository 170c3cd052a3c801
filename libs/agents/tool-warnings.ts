import { namedStatement, rethrowUnavailable, type Queryable } from '#platform';
import type { ReadinessIssue } from './harness.ts';
import type { AgentManifest } from './manifest.ts';

const NOTE_TOOL_WARNINGS = namedStatement(import.meta.dirname, 'note-tool-warnings.sql');
const FIND_TOOL_WARNINGS = namedStatement(import.meta.dirname, 'find-tool-warnings.sql');

/** The most warnings that are stored for one tool server. The rest are counted. */
const MAX_WARNINGS = 20;

/**
 * Stores why tools of a server were left out of its last list. Stored, because workers read the lists and the API process shows
 * the warnings. An empty list of warnings removes the earlier ones. Throws DatabaseUnavailable.
 */
export async function noteToolWarnings(
  database: Queryable,
  agentId: string,
  toolServer: string,
  warnings: readonly string[],
): Promise<void> {
  const more = warnings.length - MAX_WARNINGS;
  const noted = [...warnings.slice(0, MAX_WARNINGS), ...(more > 0 ? [`And ${more} more warnings.`] : [])];
  await database.query({ ...NOTE_TOOL_WARNINGS, values: [agentId, toolServer, noted] }).catch(rethrowUnavailable);
}

/** Returns the stored warnings of the tool servers in a manifest. Throws DatabaseUnavailable. */
export async function findToolWarnings(
  database: Queryable,
  agentId: string,
  { toolServers }: AgentManifest,
): Promise<ReadinessIssue[]> {
  const { rows } = await database
    .query<{ toolServer: string; warnings: string[] }>({ ...FIND_TOOL_WARNINGS, values: [agentId] })
    .catch(rethrowUnavailable);
  const found = new Map(rows.map(({ toolServer, warnings }) => [toolServer, warnings]));
  return toolServers.flatMap(({ name }, i) =>
    (found.get(name) ?? []).map((warning) => ({
      message: 'some tools of a tool server were left out',
      detail: `toolServers.${i} (${name}): ${warning}`,
    })),
  );
}
