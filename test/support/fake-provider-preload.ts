import type { Harness, StepContext, StepEvent, Tool, ToolResult } from '#agents';
import type { StepRequest, ToolName, ToolRequest, WorkStop } from './fake-provider.ts';

/**
 * Preloaded into processes under test (`FakeProvider.env`): gives them one harness more, which asks a provider and uses tools
 * over HTTP. So they are the processes of production, from their own entry points.
 */
Object.assign(globalThis, { [Symbol.for('spool.harnesses')]: [outsideHarness()] });

function outsideHarness(): Harness {
  return {
    name: 'outside',
    checkSettings: () => [],
    readiness: () => Promise.resolve([]),
    tools: ({ manifest }) => Promise.resolve(toolsOf(String(manifest.harness['url']))),
    step: askProvider,
  };
}

/** When the last complete turn of this process's event loop ended. A paused process completes no turn. */
let lastTurnAt = Date.now();
setInterval(() => setImmediate(() => (lastTurnAt = Date.now())), 20).unref();

/** Reports when this process stopped the work. Uses its own clock, because the test's process may be paused. */
function reportStop(url: string, runId: string, signal: AbortSignal): void {
  signal.addEventListener('abort', () => {
    const stop: WorkStop = { runId, pid: process.pid, lastTurnAt, stoppedAt: Date.now() };
    fetch(`${url}/stopped`, { method: 'POST', body: JSON.stringify(stop) }).catch(() => undefined);
  });
}

async function* askProvider(context: StepContext): AsyncGenerator<StepEvent> {
  const { threadId, runId, attempt, transcript, manifest, signal } = context;
  const request: StepRequest = { threadId, runId, attempt, transcript, pid: process.pid };
  reportStop(String(manifest.harness['url']), runId, signal);
  const response = await post(`${String(manifest.harness['url'])}/step`, request, signal);
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of response.body!) {
    const lines = (rest + decoder.decode(bytes as Uint8Array, { stream: true })).split('\n');
    rest = lines.pop()!;
    for (const line of lines) yield JSON.parse(line) as StepEvent;
  }
}

function toolsOf(url: string): Tool[] {
  const tool = (name: ToolName, policy: Tool['policy'], idempotent: boolean): Tool => ({
    name,
    title: name,
    description: name,
    inputSchema: { type: 'object' },
    policy,
    idempotent,
    execute: async (_input, { threadId, runId, toolCallId, signal }) => {
      const request: ToolRequest = { threadId, runId, toolCallId, pid: process.pid };
      const response = await post(`${url}/tools/${name}`, request, signal);
      return (await response.json()) as ToolResult;
    },
  });
  return [tool('note', 'ask', false), tool('act', 'allow', false), tool('lookup', 'allow', true)];
}

async function post(url: string, body: StepRequest | ToolRequest, signal: AbortSignal): Promise<Response> {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify(body), signal });
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return response;
}
