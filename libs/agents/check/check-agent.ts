import { ByteBudget, createLogger, newId, type Config } from '#platform';
import { realAgents } from '../agents.module.ts';
import { allowancesOf } from '../allowances.ts';
import { echoHarness } from '../echo/echo-harness.ts';
import { guideHarness } from '../guide/guide-harness.ts';
import { HarnessError, harnessesByName, type Harness, type RunContext, type Tool } from '../harness.ts';
import type { AgentManifest } from '../manifest.ts';
import { ReadinessCheck } from '../readiness.ts';
import { patternTest, toolPolicies } from '../tool-policy.ts';
import { checkFallback, checkModel, type Oddity } from './check-model.ts';
import { causeOf, fails, works, type CheckRow } from './check-row.ts';
import { watchAnswers } from './watch-answers.ts';

export type { CheckRow };

export interface AgentCheckOptions {
  config: Config;
  /** The variables of the process: what manifests may name of them, `config` says. */
  env: Record<string, string | undefined>;
  /** Whether the provider and the tool servers are asked too. */
  live: boolean;
}

/** Returns whether the agent would run, as far as the rows tell. */
export const wouldRun = (rows: readonly CheckRow[]): boolean =>
  !rows.some(({ needed, state }) => needed && state === 'does not work');

/**
 * Says what of an agent works in this process, by the code that Runs use. It needs no database. With `live` it asks the provider
 * three or four times, once more for images, and each fallback model and tool server once.
 */
export async function checkAgent(
  manifest: AgentManifest,
  { config, env, live }: AgentCheckOptions,
): Promise<CheckRow[]> {
  const { seen, watch } = watchAnswers();
  const oddities = new Map<string, Oddity>();
  const leftOut = new Map<string, readonly string[]>();
  const agents = realAgents(config, createLogger('silent', 'check'), {
    env,
    watch,
    onOddity: (kind, place) => oddities.set(`${kind} at ${place}`, { kind, place }),
    noteWarnings: async (_agentId, toolServer, warnings) => void leftOut.set(toolServer, warnings),
  });
  const harnesses = harnessesByName([echoHarness(), guideHarness(), agents]);
  const readiness = new ReadinessCheck({ harnesses, allowances: allowancesOf(config, env), now: Date.now });
  try {
    const rows = await settingsRows(manifest, readiness);
    const harness = harnesses.get(manifest.harness.name);
    if (!live || harness === undefined || !wouldRun(rows)) return rows;
    const context = contextOf(manifest);
    const { serverRows, tools } = await checkServers(harness, context, leftOut);
    const toolRows = [...serverRows, ...patternRows(manifest, serverRows, tools)];
    const { model } = manifest;
    // Only this harness asks a provider.
    if (harness.name !== 'model' || model === undefined) return [...rows, ...toolRows];
    const policyOf = toolPolicies(manifest);
    const sent = tools.filter((tool) => policyOf(tool) !== 'deny');
    const modelRows = await checkModel({ harness, context, model, tools: sent, seen, oddities });
    const fallbackRows: CheckRow[] = [];
    for (const each of manifest.fallbackModels ?? [])
      fallbackRows.push(await checkFallback({ harness, context, model: each }));
    return [...rows, ...modelRows, ...fallbackRows, ...toolRows];
  } finally {
    for (const harness of harnesses.values()) await harness.close?.();
  }
}

async function settingsRows(manifest: AgentManifest, readiness: ReadinessCheck): Promise<CheckRow[]> {
  const issues = (await readiness.of(manifest)).map(({ detail }) => fails('settings', detail, true));
  const warnings = (await readiness.warnings(manifest)).map(({ detail }) => fails('settings', detail));
  const found = [...issues, ...warnings];
  return found.length > 0
    ? found
    : [works('settings', 'The settings are right, and the secrets and programs are there and allowed.')];
}

function contextOf(manifest: AgentManifest): RunContext {
  const budget = new ByteBudget({ process: Infinity, share: Infinity });
  return {
    ...{ agentId: newId(), threadId: newId(), runId: newId(), attempt: 1, userId: 'spool-agent-check', manifest },
    runTask: () => Promise.reject(new Error('A check runs no tool.')),
    openHold: () => budget.hold('check'),
    signal: new AbortController().signal,
  };
}

/** Each server for itself, as if it were required: then the failure comes as it is. */
async function checkServers(harness: Harness, context: RunContext, leftOut: ReadonlyMap<string, readonly string[]>) {
  const { manifest } = context;
  const toolsOf = (toolServers: AgentManifest['toolServers']) =>
    harness.tools({ ...context, manifest: { ...manifest, toolServers } });
  const own = await toolsOf([]);
  const checked = await Promise.all(
    manifest.toolServers.map(async (server): Promise<{ row: CheckRow; tools: readonly Tool[] }> => {
      const check = `tool server ${server.name}`;
      try {
        const tools = (await toolsOf([{ ...server, required: true }])).filter((tool) => !own.includes(tool));
        return { row: works(check, describeTools(tools, leftOut.get(server.name) ?? [])), tools };
      } catch (error) {
        if (!(error instanceof HarnessError)) throw error;
        return { row: fails(check, causeOf(error) || error.message, server.required), tools: [] };
      }
    }),
  );
  return { serverRows: checked.map(({ row }) => row), tools: [...own, ...checked.flatMap(({ tools }) => tools)] };
}

/** A misspelled pattern would leave a tool to its own default, also one that the manifest means to deny. */
function patternRows(
  manifest: AgentManifest,
  serverRows: readonly CheckRow[],
  tools: readonly Pick<Tool, 'name'>[],
): CheckRow[] {
  // Unknown tools may match.
  if (serverRows.some(({ state }) => state !== 'works')) return [];
  const unused = manifest.tools.filter(({ pattern }) => {
    const fits = patternTest(pattern);
    return !tools.some(({ name }) => fits(name));
  });
  return unused.map(({ pattern, policy }) =>
    fails('tool patterns', `No tool matches the pattern ${pattern} (${policy}).`),
  );
}

function describeTools(tools: readonly Tool[], leftOut: readonly string[]): string {
  const names = tools.map(({ name }) => name).join(', ');
  const left = leftOut.length === 0 ? '' : ` Left out: ${leftOut.join(' ')}`;
  return `${tools.length === 0 ? 'It has no tools.' : `Its tools: ${names}.`}${left}`;
}
