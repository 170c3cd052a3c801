import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import type { AgentManifestInput, StepEvent, ToolResult } from '#agents';
import type { Database } from '#platform';
import type { Said, World } from './client-records.ts';
import type { LogEntry } from './client.ts';
import { Holds, type Hold } from './holds.ts';
import {
  scriptText,
  type Call,
  type ModelCall,
  type Script,
  type StepRequest,
  type ToolName,
  type ToolRequest,
  type ToolUse,
  type WorkStop,
} from './fake-provider-calls.ts';
import { expectOutsideHeld } from './fake-provider-oracle.ts';

export { scriptText } from './fake-provider-calls.ts';
export type { ModelCall, StepRequest, ToolName, ToolRequest, ToolUse, WorkStop } from './fake-provider-calls.ts';

function parseScript(text: string): Script {
  const [, pieces, pauseMs, tools] = /pieces=(\d+) pause=(\d+) tools=(\S*)$/.exec(text) ?? [];
  if (tools === undefined) throw new Error(`no script: ${text}`);
  return { pieces: Number(pieces), pauseMs: Number(pauseMs), tools: tools.split(',').filter(Boolean) as ToolName[] };
}

/** Where a call can be held. A tool takes effect between `tool asked` and `tool done`. */
export type Point = 'step asked' | 'half said' | 'all said' | 'tool asked' | 'tool done';

/**
 * The world outside of Spool: a model provider and a tool server, played by the test's process, and what came to them.
 * Processes under test reach it by a harness of their own (fake-provider-preload.ts) and know nothing else of the test.
 */
export class FakeProvider implements World {
  readonly modelCalls: ModelCall[] = [];
  readonly toolUses: ToolUse[] = [];
  readonly stops: WorkStop[] = [];
  private readonly holds = new Holds<Point, ModelCall | ToolUse>();

  private constructor(private readonly server: Server) {}

  static async start(): Promise<FakeProvider> {
    const server = createServer((request, response) => {
      fakeProvider.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    const fakeProvider = new FakeProvider(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return fakeProvider;
  }

  /** What processes need to have the harness. */
  readonly env = {
    NODE_OPTIONS: `--import ${pathToFileURL(join(import.meta.dirname, '../../dist/test/support/fake-provider-preload.js')).href.replace('/dist/dist/', '/dist/')}`,
  };

  /** Of an agent that lives on this. No Run fails because its workers die. */
  get manifest(): Partial<AgentManifestInput> {
    const url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return { name: 'outside', harness: { name: 'outside', url }, limits: { maxLosses: 100 } };
  }

  hold(point: Point, wanted?: (call: ModelCall | ToolUse) => boolean): Hold<ModelCall | ToolUse> {
    return this.holds.hold(point, wanted);
  }

  readonly textOf = scriptText;

  expectHeld(said: readonly Said[], log: readonly LogEntry[], database: Database): Promise<void> {
    return expectOutsideHeld(this, said, log, database);
  }

  /** How often the tool took effect. */
  effectsOf(toolCallId: string): number {
    return this.toolUses.filter((use) => use.toolCallId === toolCallId && use.tookEffect).length;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of request.setEncoding('utf8')) text += chunk;
    if (request.url === '/stopped') {
      this.stops.push(JSON.parse(text) as WorkStop);
      return void response.end();
    }
    if (request.url === '/step') return this.takeStep(JSON.parse(text) as StepRequest, response);
    return this.useTool(request.url!.slice('/tools/'.length) as ToolName, JSON.parse(text) as ToolRequest, response);
  }

  private async takeStep({ transcript, ...sender }: StepRequest, response: ServerResponse): Promise<void> {
    const asked = transcript.findLastIndex(({ role }) => role === 'user');
    const since = transcript.slice(asked + 1);
    const message = (transcript[asked] as { text: string }).text;
    const script = parseScript(message);
    const step = since.filter(({ role }) => role === 'assistant').length;
    const toolCalls = step > 0 ? [] : script.tools.map((toolName) => ({ toolName, toolInput: {} }));
    const half = Math.ceil(script.pieces / 2);
    const count = toolCalls.length > 0 ? half : script.pieces - (step > 0 ? half : 0);
    const number = this.modelCalls.length;
    const pieces = Array.from({ length: count }, (_, i) => `Piece ${i} of call ${number}. `);
    const told = since.filter((entry) => entry.role === 'tool');
    const text = pieces.join('');
    const call: ModelCall = { ...sender, ...opened(), step, message, told, text };
    this.modelCalls.push(call);
    const gone = whenGone(call, response);

    const send = (event: StepEvent): void => void response.write(`${JSON.stringify(event)}\n`);
    await this.holds.pass('step asked', call, gone);
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    for (const [i, piece] of pieces.entries()) {
      if (i === Math.floor(count / 2)) await this.holds.pass('half said', call, gone);
      if (script.pauseMs > 0) await sleep(script.pauseMs);
      if (call.closedAt !== null) return;
      send({ type: 'text', text: piece });
    }
    await this.holds.pass('all said', call, gone);
    send({ type: 'usage', inputTokens: transcript.length, outputTokens: count });
    send({ type: 'message', text, toolCalls });
    response.end();
  }

  private async useTool(toolName: ToolName, request: ToolRequest, response: ServerResponse): Promise<void> {
    const use: ToolUse = { ...request, ...opened(), toolName, tookEffect: false };
    this.toolUses.push(use);
    const gone = whenGone(use, response);
    await this.holds.pass('tool asked', use, gone);
    if (use.closedAt !== null) return;
    use.tookEffect = true;
    await this.holds.pass('tool done', use, gone);
    const result: ToolResult = { text: `${toolName} is done.`, isError: false };
    response.end(JSON.stringify(result));
  }
}

const opened = (): { openedAt: number; closedAt: null } => ({ openedAt: Date.now(), closedAt: null });

function whenGone(call: Call, response: ServerResponse): Promise<void> {
  return new Promise((resolve) =>
    response.once('close', () => {
      call.closedAt = Date.now();
      resolve();
    }),
  );
}
