import { createHash } from 'node:crypto';
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Holds, type Hold } from '../holds.ts';
import { anthropic } from './anthropic.ts';
import { whatIsAsked, type Asked } from './asked.ts';
import { openai } from './openai.ts';
import { thoughtKey, type Answer, type ErrorBody, type Frames, type Protocol, type Read } from './protocol.ts';
import {
  failureAt,
  parseScript,
  readScripts,
  type ErrorKind,
  type Failure,
  type Script,
  type ScriptInput,
  type Step,
} from './script.ts';
import { fill } from './templates.ts';

const PROTOCOLS = [openai, anthropic];
const SCRIPTS = join(import.meta.dirname, 'scripts');
/** Into how many pieces the input of a tool call is cut. */
const INPUT_PIECES = 3;
const PAGE = '<!doctype html><title>Maintenance</title><p>We will be back soon.</p>\n';

export interface ProviderRequest {
  protocol: Protocol['name'];
  path: string;
  headers: IncomingHttpHeaders;
  /** Undefined if it is not JSON. */
  body: unknown;
  /** By Date.now(); `closedAt` is null while the connection is open. */
  openedAt: number;
  closedAt: number | null;
  /** Null if it was refused. `line` tells the conversation: it is the whole line that names the script. */
  script: string | null;
  line: string | null;
  /** 0 for the first of its message. */
  step: number | null;
  /** What the script lets happen to it. */
  failure: Failure | null;
  /** Why it was refused: what the provider that is played would not have taken either. */
  refusal: string | null;
}

/** Where a request can be held: before anything is sent, before the middle piece, and before the end is sent. */
export type ProviderPoint = 'asked' | 'half said' | 'all said';

export interface ProviderOptions {
  apiKey?: string;
  /** More than those in `scripts/`. */
  scripts?: Record<string, ScriptInput>;
}

/**
 * A model provider that speaks the wire formats of OpenAI's chat completions and Anthropic's messages, and says what
 * scripts tell it to. A user message that starts with `script: NAME` chooses one; which step of it is asked for is
 * counted in the request, so a request that is sent again gets the same step again. Refuses what the providers refuse.
 */
export class ScriptedProvider {
  readonly requests: ProviderRequest[] = [];
  readonly apiKey: string;
  private readonly scripts: Map<string, Script>;
  private readonly holds = new Holds<ProviderPoint, ProviderRequest>();
  private readonly givenOut = { thoughts: new Set<string>(), signatures: new Map<string, string>() };
  /** How many requests came for a step of a conversation. */
  private readonly counts = new Map<string, number>();

  private constructor(
    private readonly server: Server,
    { apiKey = 'sk-scripted', scripts = {} }: ProviderOptions,
  ) {
    this.apiKey = apiKey;
    const more = Object.entries(scripts).map(([name, script]) => [name, parseScript(name, script)] as const);
    this.scripts = new Map([...readScripts(SCRIPTS), ...more]);
  }

  static async start(options: ProviderOptions = {}): Promise<ScriptedProvider> {
    const server = createServer((request, response) => {
      provider.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    const provider = new ScriptedProvider(server, options);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return provider;
  }

  /** Base URLs, as the providers' own are: requests go to `/chat/completions` and `/messages` under them. */
  get openaiUrl(): string {
    return `${this.url}/openai/v1`;
  }
  get anthropicUrl(): string {
    return `${this.url}/anthropic/v1`;
  }
  private get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  hold(point: ProviderPoint, wanted?: (request: ProviderRequest) => boolean): Hold<ProviderRequest> {
    return this.holds.hold(point, wanted);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.server.close(resolve));
    this.server.closeAllConnections();
    await closed;
  }

  private async answer(message: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const chunk of message.setEncoding('utf8')) text += chunk;
    const path = new URL(message.url!, this.url).pathname;
    const protocol = PROTOCOLS.find((one) => one.path === path && message.method === 'POST');
    if (!protocol) return void response.writeHead(404).end();
    const request = record(protocol, path, message.headers, parseJson(text));
    const number = this.requests.push(request);
    const gone = whenGone(request, response);
    response.setHeader(protocol.idHeader, `req_${number}`);

    const found = this.find(protocol, request);
    if ('kind' in found) {
      request.refusal = found.refusal;
      return sendError(response, protocol.error(found.kind, found.refusal));
    }
    const { read, asked, step } = found;
    Object.assign(request, { script: asked.script, line: asked.line, step: asked.step });
    const failure = failureAt(step.failures, this.count(asked));
    request.failure = failure ?? null;
    await this.holds.pass('asked', request, gone);
    if (failure?.hang) return gone;
    if (failure?.html) return void response.writeHead(200, { 'content-type': 'text/html' }).end(PAGE);
    if (failure && isByStatus(failure)) return sendFailure(response, protocol, failure);
    const frames = read.frames(this.prepare(protocol, read.model, `${number}`, asked, step));
    await this.stream({ protocol, request, response, gone, frames, pauseMs: step.pauseMs, failure });
  }

  /** What the request asks for, or why it is refused. */
  private find(
    protocol: Protocol,
    { headers, body }: ProviderRequest,
  ): { read: Read; asked: Asked; step: Step } | { kind: ErrorKind; refusal: string } {
    if (protocol.keyOf(headers) !== this.apiKey) return { kind: 'unauthorized', refusal: 'invalid API key' };
    const read = protocol.read(body, headers, this.givenOut);
    if (typeof read === 'string') return { kind: 'invalid', refusal: read };
    const asked = whatIsAsked(read.turns);
    if (!asked) return { kind: 'invalid', refusal: 'The last user message does not start with `script: NAME`.' };
    const script = this.scripts.get(asked.script);
    if (!script) return { kind: 'invalid', refusal: `There is no script ${asked.script}.` };
    const step = script.steps[asked.step];
    if (!step) return { kind: 'invalid', refusal: `The script ${asked.script} has no step ${asked.step}.` };
    return { read, asked, step };
  }

  /** How many requests for this step of this conversation came before this one. */
  private count({ line, step }: Asked): number {
    const key = JSON.stringify([line, step]);
    const before = this.counts.get(key) ?? 0;
    this.counts.set(key, before + 1);
    return before;
  }

  private prepare(protocol: Protocol, model: string, id: string, asked: Asked, step: Step): Answer {
    const toolCalls = step.toolCalls.map(({ name, input, rawArguments }, i) => ({
      id: protocol.toolCallId(`${id}_${i}`),
      name: fill(name, asked),
      pieces: inPieces(rawArguments ?? JSON.stringify(fill(input, asked))),
    }));
    const answer: Answer = {
      id,
      model,
      text: fill(step.text, asked),
      toolCalls,
      usage: step.usage,
      finish: step.finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
    };
    if (!step.thinking) return answer;
    const thinking = step.thinking.pieces.join('');
    const signature = step.thinking.signature ?? createHash('sha256').update(thinking).digest('base64');
    this.givenOut.thoughts.add(thoughtKey(thinking, signature));
    for (const call of toolCalls) this.givenOut.signatures.set(call.id, signature);
    return { ...answer, thinking: { pieces: step.thinking.pieces, signature } };
  }

  private async stream({ protocol, request, response, gone, frames, pauseMs, failure }: Streaming): Promise<void> {
    const send = (text: string) => Promise.race([new Promise((sent) => response.write(text, sent)), gone]);
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' });
    await send(frames.before);
    const pause = () => Promise.race([sleep(pauseMs, undefined, { ref: false }), gone]);
    const pieces = frames.pieces.slice(0, failure && piecesBefore(failure));
    for (const [i, piece] of pieces.entries()) {
      if (i === Math.floor(frames.pieces.length / 2)) await this.holds.pass('half said', request, gone);
      await pause();
      if (request.closedAt !== null) return;
      await send(piece);
    }
    if (failure) {
      await pause();
      return breakOff(protocol, response, gone, failure);
    }
    await this.holds.pass('all said', request, gone);
    response.end(frames.after);
  }
}

interface Streaming {
  protocol: Protocol;
  request: ProviderRequest;
  response: ServerResponse;
  gone: Promise<void>;
  frames: Frames;
  pauseMs: number;
  failure: Failure | undefined;
}

/** Ends an answer in the middle, as the failure says. */
async function breakOff(protocol: Protocol, response: ServerResponse, gone: Promise<void>, failure: Failure) {
  if (failure.hangAfterPieces !== undefined) await gone;
  else if (failure.resetAfterPieces !== undefined) response.socket?.resetAndDestroy();
  else if (failure.errorEventAfterPieces !== undefined)
    response.end(protocol.errorEvent(failure.error ?? 'overloaded', failure.body));
  else response.end();
}

const piecesBefore = (failure: Failure): number | undefined =>
  failure.hangAfterPieces ?? failure.resetAfterPieces ?? failure.errorEventAfterPieces;

const isByStatus = (failure: Failure): boolean =>
  failure.status !== undefined || (piecesBefore(failure) === undefined && !failure.endWithoutFinish);

const KINDS: Record<number, ErrorKind> = {
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not-found',
  413: 'too-long',
  429: 'rate-limited',
  503: 'overloaded',
  529: 'overloaded',
};

function sendFailure(response: ServerResponse, protocol: Protocol, failure: Failure): void {
  const { status, headers, body } = failure;
  const kind = failure.error ?? KINDS[status!] ?? (status! < 500 ? 'invalid' : 'server-error');
  const usual = protocol.error(kind);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  sendError(response, { status: status ?? usual.status, body: body ?? usual.body });
}

function sendError(response: ServerResponse, { status, body }: ErrorBody): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function record(protocol: Protocol, path: string, headers: IncomingHttpHeaders, body: unknown): ProviderRequest {
  return {
    ...{ protocol: protocol.name, path, headers, body, openedAt: Date.now(), closedAt: null },
    ...{ script: null, line: null, step: null, failure: null, refusal: null },
  };
}

function whenGone(request: ProviderRequest, response: ServerResponse): Promise<void> {
  return new Promise((resolve) =>
    response.once('close', () => {
      request.closedAt = Date.now();
      resolve();
    }),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** At least one, even of nothing. */
function inPieces(text: string): string[] {
  const size = Math.ceil(text.length / INPUT_PIECES) || 1;
  const starts = Array.from({ length: Math.ceil(text.length / size) || 1 }, (_, i) => i * size);
  return starts.map((start) => text.slice(start, start + size));
}
