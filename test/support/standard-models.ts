import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AgentManifestInput } from '#agents';
import type { Database } from '#platform';
import type { SpawnedNode } from '#testing';
import type { Said, World } from './client-records.ts';
import type { Caller, LogEntry } from './client.ts';
import { groupBy } from './group-by.ts';
import { MODEL_SCRIPTS, modelText, textsOf, usageOf } from './model-scripts.ts';
import { addAgent } from './more-agents.ts';
import { expectToolEffects, messagesOf } from './fake-provider-oracle.ts';
import { ScriptedProvider, type ProviderRequest } from './provider/scripted-provider.ts';
import type { Random } from './random.ts';
import { RecordingTools } from './recording-tools.ts';
import { StandardLoad, type StandardLoadOptions } from './standard-load.ts';
import { startSystem, type ApiProcess, type System, type SystemOptions } from './system.ts';

/** A wire format of the provider, of which there is an agent. */
export type Wire = ProviderRequest['protocol'];
export const WIRES: readonly Wire[] = ['openai', 'anthropic'];

/** Two apis, and agents whose models and tools the test plays, but for two tool servers that are processes of the worker. */
export interface StandardModels extends System {
  provider: ScriptedProvider;
  tools: RecordingTools;
  apis: ApiProcess[];
  /** Those that run now; none at first. */
  workers: SpawnedNode[];
  callerOf(wire: Wire, api?: number): Caller;
  /** How often a call of `odd__hang` came to its server, by Run. */
  hangs(): string[];
  /** The requests of a message's conversation, in the order in which they came. */
  requestsOf(text: string): ProviderRequest[];
  startLoad(wire: Wire, random: Random, options?: StandardLoadOptions): StandardLoad;
}

const APIS = 2;
const KEY = 'sk-scripted';
const ODD = join(import.meta.dirname, '../../libs/agents/mcp/odd-server.testing.mjs');
const EVERYTHING = createRequire(import.meta.filename).resolve('@modelcontextprotocol/server-everything/dist/index.js');

export async function startStandardModels({ env, ...more }: SystemOptions): Promise<StandardModels> {
  const provider = await ScriptedProvider.start({ apiKey: KEY, scripts: MODEL_SCRIPTS });
  const tools = await RecordingTools.start();
  const folder = await mkdtemp(join(tmpdir(), 'spool-models-'));
  // Servers of a worker that is root run as nobody.
  await chmod(folder, 0o777);
  const journal = join(folder, 'journal');
  const stop: (() => Promise<unknown>)[] = [
    () => provider.close(),
    () => tools.close(),
    () => rm(folder, { recursive: true }),
  ];
  try {
    const keys = { MODEL_KEY: KEY, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1' };
    const system = await startSystem({ ...more, env: { ...keys, ...env } });
    stop.unshift(() => system.stop());
    const apis = await Promise.all(Array.from({ length: APIS }, () => system.startApi()));
    const given = { provider, tools };
    const node = { command: process.execPath };
    const processes = [
      { ...node, name: 'everything', args: [EVERYTHING] },
      { ...node, name: 'odd', args: [ODD], env: { JOURNAL: journal } },
    ];
    const add = (wire: Wire, extra: AgentManifestInput['toolServers'] = []): Promise<string> =>
      addAgent(system, manifestOf(wire, given, extra));
    const agentIds = { openai: await add('openai', processes), anthropic: await add('anthropic', processes) };
    const loadAgentIds = { openai: await add('openai'), anthropic: await add('anthropic') };
    return standardModels(system, { ...given, apis, journal, agentIds, loadAgentIds, stop });
  } catch (error) {
    for (const end of stop) await end();
    throw error;
  }
}

function manifestOf(
  wire: Wire,
  { provider, tools }: Given,
  processes: NonNullable<AgentManifestInput['toolServers']>,
): AgentManifestInput {
  const model: AgentManifestInput['model'] = { provider: 'openai-compatible', name: 'm', apiKey: { env: 'MODEL_KEY' } };
  return {
    name: wire,
    harness: { name: 'model' },
    model:
      wire === 'openai'
        ? { ...model, baseUrl: provider.openaiUrl }
        : { ...model, provider: 'anthropic', baseUrl: provider.anthropicUrl, settings: { thinkingTokens: 1_024 } },
    toolServers: [{ name: 'tools', url: tools.url }, ...processes],
    tools: ['tools__act', ...processes.map(({ name }) => `${name}__hang`)].map((pattern) => ({
      pattern,
      policy: 'allow',
    })),
    // No Run fails because its workers die.
    limits: { maxLosses: 100 },
  };
}

type Given = Pick<StandardModels, 'provider' | 'tools'>;

interface Parts extends Given, Pick<StandardModels, 'apis'> {
  journal: string;
  agentIds: Record<Wire, string>;
  /** Of agents without processes of tool servers: each worker that is killed takes them with it, and they start slowly. */
  loadAgentIds: Record<Wire, string>;
  /** In this order. */
  stop: (() => Promise<unknown>)[];
}

function standardModels(system: System, { agentIds, loadAgentIds, journal, stop, ...parts }: Parts): StandardModels {
  const { provider, tools, apis } = parts;
  const { database } = system;
  const world: World = {
    textOf: (name, { tools: [toolName] }) => modelText(toolName, name),
    expectHeld: (said, log) => expectModelsHeld(said, log, { provider, tools, database }),
  };
  const loads: StandardLoad[] = [];
  const callerOf = (wire: Wire, api = 0): Caller => ({ ...apis[api]!.caller, agentId: agentIds[wire] });
  return {
    ...system,
    ...parts,
    workers: [],
    callerOf,
    hangs: () => hangsIn(readFileSync(journal, 'utf8')),
    requestsOf: (text) => provider.requests.filter(({ line }) => line === text.split('\n', 1)[0]),
    startLoad: (wire, random, options) => {
      const callers = apis.map((_, i) => () => ({ ...callerOf(wire, i), agentId: loadAgentIds[wire] }));
      loads.push(new StandardLoad({ database, fakeProvider: world, callers, random }, options));
      return loads.at(-1)!;
    },
    stop: async () => {
      loads.forEach((load) => load.abandon());
      for (const end of stop) await end();
    },
  };
}

function hangsIn(journal: string): string[] {
  type Entry = { did: string; name: string; meta: Record<string, string> };
  const entries = journal.split('\n').filter(Boolean);
  const calls = entries.map((line) => JSON.parse(line) as Entry).filter(({ did }) => did === 'call');
  return calls.filter(({ name }) => name === 'hang').map(({ meta }) => meta['spool/runId']!);
}

interface Held {
  provider: ScriptedProvider;
  tools: RecordingTools;
  database: Database;
}

/** What models said, whole and once, and what it cost; what tools did; and the provider had nothing to refuse. */
async function expectModelsHeld(said: readonly Said[], log: readonly LogEntry[], held: Held): Promise<void> {
  const { provider, tools, database } = held;
  const byRun = groupBy(log, ({ runId }) => runId ?? '');
  const shown = said.map(({ runId }) => shownOf(byRun.get(runId)!));
  expect(shown).toEqual(said.map(({ text }) => ({ messages: textsOf(text), usage: usageOf(text) })));
  await expectToolEffects(database, tools.uses, new Set(said.map(({ runId }) => runId)));
  expect(provider.requests.flatMap(({ refusal }) => refusal ?? [])).toEqual([]);
}

/** What the log shows of a Run. */
export function shownOf(entries: readonly LogEntry[]) {
  const usage = entries
    .filter(({ type }) => type === 'usage.updated')
    .map(({ content }) => JSON.parse(content) as object);
  return { messages: messagesOf(entries), usage };
}

/** The processes that a process has started, tool servers among them. */
export function childrenOf(pid: number): number[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return all.map(Number).filter((one) => statOf(one)?.parent === pid);
}

export const isRunning = (pid: number): boolean => ![undefined, 'Z'].includes(statOf(pid)?.state);

function statOf(pid: number): { state: string; parent: number } | undefined {
  try {
    const [, state, parent] = /^\d+ \(.*\) (\S) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))!;
    return { state: state!, parent: Number(parent) };
  } catch {
    return undefined; // it is gone
  }
}
