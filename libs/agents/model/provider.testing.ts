import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allowing } from '../allowances.testing.ts';
import type { FolderFile, StepContext, StepEvent, ThreadFiles } from '../harness.ts';
import { agentManifestSchema, type AgentManifest, type AgentManifestInput } from '../manifest.ts';
import { roomWithoutEnd } from '../room.testing.ts';
import { modelHarness } from './model-harness.ts';
import type { ModelChoice } from './model-settings.ts';

export interface AskedRequest {
  url: string;
  headers: IncomingHttpHeaders;
  body: Record<string, unknown>;
  /** Whether its connection was closed before the answer was whole. */
  cut: boolean;
}

export type Respond = (response: ServerResponse, request: AskedRequest) => void;

/** A provider on a port of its own that answers each call as it is told. */
async function startProvider(respond: Respond) {
  const asked: AskedRequest[] = [];
  const server = createServer((message, response) => {
    const pieces: Buffer[] = [];
    message.on('data', (piece: Buffer) => pieces.push(piece));
    message.on('end', () => {
      const body = JSON.parse(String(Buffer.concat(pieces))) as Record<string, unknown>;
      const request = { url: message.url ?? '', headers: message.headers, body, cut: false };
      asked.push(request);
      response.on('close', () => (request.cut = !response.writableFinished));
      respond(response, request);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    asked,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The pieces of a stream; `end: false` leaves it open. */
export function streams(pieces: readonly object[], { end = true, headers = {} } = {}): Respond {
  return (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
    response.flushHeaders();
    for (const piece of pieces) response.write(`data: ${JSON.stringify(piece)}\n\n`);
    if (end) response.end('data: [DONE]\n\n');
  };
}

export function refuses(status: number, body: object | string, headers: Record<string, string> = {}): Respond {
  return (response) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };
}

export const openAi = {
  delta: (delta: object) => ({ id: 'c-1', choices: [{ index: 0, delta, finish_reason: null }] }),
  text: (content: string) => openAi.delta({ content }),
  call: (name: string, args: string, index = 0) =>
    openAi.delta({ tool_calls: [{ index, id: `call-${index}`, function: { name, arguments: args } }] }),
  finish: (reason: string) => ({ id: 'c-1', choices: [{ index: 0, delta: {}, finish_reason: reason }] }),
  usage: (input: number, output: number, cached?: number) => ({
    id: 'c-1',
    choices: [],
    usage: {
      prompt_tokens: input,
      completion_tokens: output,
      ...(cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } }),
    },
  }),
};

export const anthropic = {
  start: (usage: object = { input_tokens: 10, output_tokens: 1 }) => ({
    type: 'message_start',
    message: { type: 'message', id: 'm-1', role: 'assistant', model: 'm', content: [], stop_reason: null, usage },
  }),
  block: (index: number, block: object, deltas: readonly object[]) => [
    { type: 'content_block_start', index, content_block: block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ],
  text: (index: number, text: string) =>
    anthropic.block(index, { type: 'text', text: '' }, [{ type: 'text_delta', text }]),
  thinking: (index: number, thinking: string, signature: string) =>
    anthropic.block(index, { type: 'thinking', thinking: '' }, [
      { type: 'thinking_delta', thinking },
      { type: 'signature_delta', signature },
    ]),
  call: (index: number, name: string, json: string) =>
    anthropic.block(index, { type: 'tool_use', id: `toolu_${index}`, name, input: {} }, [
      { type: 'input_json_delta', partial_json: json },
    ]),
  end: (reason: string, usage: object = { output_tokens: 20 }) => [
    { type: 'message_delta', delta: { stop_reason: reason, stop_sequence: null }, usage },
    { type: 'message_stop' },
  ],
};

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

export function manifestWith(model: Partial<ModelChoice>, more: Partial<AgentManifestInput> = {}): AgentManifest {
  const choice = { provider: 'openai-compatible' as const, name: 'm-1', ...model };
  return agentManifestSchema.parse({ name: 'Model', harness: { name: 'model' }, model: choice, ...more });
}

export function contextWith(manifest: AgentManifest, more: Partial<StepContext> = {}): StepContext {
  const ids = { agentId: ID, threadId: ID, runId: ID, userId: 'user-1', attempt: 1 };
  const transcript: StepContext['transcript'] = [{ role: 'user', text: 'Hello', fileIds: [] }];
  const { signal } = new AbortController();
  const runTask: StepContext['runTask'] = () => Promise.reject(new Error('there is no task pool'));
  return { ...ids, manifest, transcript, tools: [], files: filesOf([]), runTask, signal, ...roomWithoutEnd(), ...more };
}

/** The bytes of a file, as `filesOf` has them: a GIF by its beginning. */
export const bytesOf = (fileId: string): Buffer => Buffer.from(`GIF89a${fileId}`);

/** Files whose bytes tell their ids. */
export function filesOf(files: readonly FolderFile[]): ThreadFiles {
  return {
    list: () => Promise.resolve(files),
    read: ({ fileId }) =>
      Promise.resolve(
        (async function* () {
          yield bytesOf(fileId);
        })(),
      ),
  };
}

export function testHarness(env: Record<string, string> = {}) {
  const now = (): number => Date.parse('2026-11-22T10:00:00Z');
  return modelHarness({ fetch, tools: () => Promise.resolve([]), allowances: allowing(env), now });
}

type Provider = Awaited<ReturnType<typeof startProvider>>;

export const KEY = 'sk-secret-0123456789';
export const apiKey = { env: 'KEY' };
export const env = { KEY };

/** Steps of agents whose providers answer as they are told; all of them are closed after each test. */
export function stepsAndProviders() {
  let providers: Provider[] = [];
  afterEach(async () => {
    await Promise.all(providers.map((provider) => provider.close()));
    providers = [];
  });
  const start = async (respond: Respond): Promise<Provider> => {
    const provider = await startProvider(respond);
    providers.push(provider);
    return provider;
  };
  const stepWith = async (respond: Respond, model: Partial<ModelChoice> = {}, more: Partial<StepContext> = {}) => {
    const provider = await start(respond);
    const manifest = manifestWith({ baseUrl: provider.url, apiKey, ...model });
    return { provider, steps: testHarness(env).step(contextWith(manifest, more)) };
  };
  return { start, stepWith };
}

export async function eventsOf(steps: AsyncIterable<StepEvent>): Promise<StepEvent[]> {
  const events: StepEvent[] = [];
  for await (const event of steps) events.push(event);
  return events;
}
