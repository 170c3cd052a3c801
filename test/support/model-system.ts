import type { AgentManifestInput } from '#agents';
import { eventually, type SpawnedNode } from '#testing';
import { createAcknowledged, getThread, type Caller, type LogEntry, type Run } from './client.ts';
import { addAgent } from './more-agents.ts';
import { ScriptedProvider, type ProviderOptions, type ProviderRequest } from './provider/scripted-provider.ts';
import { startSystem, type ApiProcess, type System } from './system.ts';

export const PROTOCOLS = ['openai-compatible', 'anthropic'] as const;
export type ProtocolName = (typeof PROTOCOLS)[number];

type ModelInput = NonNullable<AgentManifestInput['model']>;
type Agent = Omit<Partial<AgentManifestInput>, 'model'> & { model?: Partial<ModelInput> };

/** An api and a worker as they are deployed, whose agents' models are all the scripted provider. */
export interface ModelSystem {
  system: System;
  provider: ScriptedProvider;
  api: ApiProcess;
  worker: SpawnedNode;
  /** Callers of a new agent by this protocol; without more it has no tools but those for files. */
  publish(protocol: ProtocolName, agent?: Agent): Promise<Caller>;
  /** What was asked for by messages with this line. */
  requestsOf(line: string): ProviderRequest[];
  stop(): Promise<void>;
}

export interface ModelSystemOptions extends ProviderOptions {
  env?: Record<string, string>;
}

export async function startModelSystem({ env = {}, ...options }: ModelSystemOptions = {}): Promise<ModelSystem> {
  const provider = await ScriptedProvider.start(options);
  const stop = [() => provider.close()];
  try {
    const system = await startSystem({
      env: { MODEL_KEY: provider.apiKey, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1', ...env },
    });
    stop.unshift(() => system.stop());
    const [api, worker] = await Promise.all([system.startApi(), system.startWorker()]);
    return {
      ...{ system, provider, api, worker },
      publish: async (protocol, agent) => ({
        ...api.caller,
        agentId: await addAgent(system, manifestOf(provider, protocol, agent)),
      }),
      requestsOf: (line) => provider.requests.filter((request) => request.line === line),
      stop: async () => {
        for (const end of stop) await end();
      },
    };
  } catch (error) {
    for (const end of stop) await end();
    throw error;
  }
}

function manifestOf(
  { openaiUrl, anthropicUrl }: ScriptedProvider,
  protocol: ProtocolName,
  { model, ...more }: Agent = {},
): AgentManifestInput {
  const baseUrl = protocol === 'anthropic' ? anthropicUrl : openaiUrl;
  return {
    name: protocol,
    harness: { name: 'model' },
    model: { provider: protocol, name: 'scripted', baseUrl, apiKey: { env: 'MODEL_KEY' }, ...model },
    ...more,
  };
}

const ENDED = ['completed', 'failed', 'cancelled', 'expired'];

export interface EndedRun extends Omit<Run, 'error'> {
  error: { code: string; message: string; retryable: boolean } | null;
  finalOutput: { text: string; warnings: { code: string; count: number }[] } | null;
}

/** The Thread's newest Run, once it has ended. */
export async function endOf(caller: Caller, threadId: string, timeoutMs = 45_000): Promise<EndedRun> {
  return eventually(
    async () => {
      const { run } = (await getThread(caller, threadId)).body;
      return run && ENDED.includes(run.status) ? (run as EndedRun) : undefined;
    },
    { what: 'the Run has ended', timeoutMs },
  );
}

/** A new Thread with this message, and its Run once it has ended. */
export async function ask(caller: Caller, text: string): Promise<{ threadId: string; run: EndedRun }> {
  const { threadId } = await createAcknowledged(caller, text);
  return { threadId, run: await endOf(caller, threadId) };
}

/** What each step used, as the log tells it. */
export const usagesOf = (log: readonly LogEntry[]): unknown[] =>
  log.filter(({ type }) => type === 'usage.updated').map(({ content }) => JSON.parse(content) as unknown);
