import type { AgentManifest, CheckRow } from '#agents';
import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { asCommandError } from '../database-errors.ts';
import { EXIT } from '../exit-codes.ts';
import { tryManifests } from '../manifests.ts';
import type { Session } from '../session.ts';
import type { Column } from '../table.ts';
import { showInLine } from '../text.ts';

const columns: Column<CheckRow>[] = [
  { head: 'check', value: ({ check }) => check },
  { head: 'state', value: ({ state }) => state },
  { head: 'found', value: ({ detail }) => detail },
];

/** The rows of one agent. `agent` is null for manifests that cannot be read. */
interface Checked {
  agent: string | null;
  rows: CheckRow[];
}

export const check: CommandSpec<[string], Options & { live?: true }> = {
  usage: 'check <file>',
  description: `Check whether the agents of a manifest, or of a folder of manifests, would run on this machine. Needs no service and no database. Exits with ${EXIT.failed} if one would not.`,
  options: [
    {
      flags: '--live',
      description:
        'also call their providers and tool servers: up to four small model calls per agent, which cost tokens',
    },
  ],
  examples: [
    ['agent check agents/support.yaml', 'settings, secrets and programs'],
    ['agent check agents/support.yaml --live', 'what its provider and tool servers can do'],
    ['agent check agents/ --live --json'],
  ],
  async run(session, [file], { live = false }) {
    const { manifests, problems } = await tryManifests([file]);
    const { checkAgent, wouldRun } = await import('#agents');
    const config = await configOf(process.env);
    const checked: Checked[] = problems.length === 0 ? [] : [{ agent: null, rows: problems.map(rowOf) }];
    for (const { manifest } of manifests) {
      if (live) session.note(`Calling the provider and the tool servers of ${manifest.name}${silenceOf(manifest)} …`);
      checked.push({ agent: manifest.name, rows: await checkAgent(manifest, { config, env: process.env, live }) });
    }
    const json = checked.flatMap(({ agent, rows }) => rows.map((row) => ({ agent, ...row })));
    await session.print(json, checked.map((one) => describe(session, one, wouldRun(one.rows))).join('\n\n'));
    if (!wouldRun(json)) session.found();
  },
};

/** Without it, waiting for a silent provider would look like a fault of the command. */
const silenceOf = ({ model }: AgentManifest): string =>
  model === undefined ? '' : ` (it times out after ${model.silenceMs / 1_000} s of silence)`;

async function configOf(env: Record<string, string | undefined>) {
  const { loadConfig } = await import('#platform');
  try {
    return loadConfig(env);
  } catch (error) {
    throw asCommandError(error);
  }
}

const rowOf = (detail: string): CheckRow => ({ check: 'manifest', state: 'does not work', detail, needed: true });

function describe(session: Session, { agent, rows }: Checked, runs: boolean): string {
  const verdict = agent === null ? 'Invalid manifests:' : `${showInLine(agent)} would ${runs ? '' : 'not '}run.`;
  return `${verdict}\n\n${session.table(columns, rows)}`;
}
