import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { InputOf, Operation } from '#contract';
import type { CommandRequest, CommandResult, Handled, StoredAnswer, ThreadStore } from '#event-store';
import { jsonSteps } from '#platform';
import type { ApiRequest } from './caller.ts';
import type { Extensions } from './extensions.ts';
import { ApiError, busyNow, rejectionError, threadContended } from './http-errors.ts';
import type { AccessGuard } from './access-guard.ts';

/** A key that a request brings, with the fingerprint of the request. */
export interface RequestKey {
  tokenId: string;
  key: string;
  fingerprint: string;
  status: number;
}

/** An operation's effect, and what it answers once the effect is stored. */
export interface Effect {
  /** Runs the commands, giving `answer` on to the CommandHandler. Throws ApiError for a refusal. */
  perform: (answer: CommandRequest['answer']) => Promise<CommandResult<never>>;
  render: (handled: Handled) => object;
}

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** One effect a key, committed together with its answer (docs/spec/decisions.md#idempotency). */
export class Idempotency {
  constructor(
    private readonly store: ThreadStore,
    private readonly access: AccessGuard,
    private readonly extensions: Extensions,
  ) {}

  /**
   * The effect and its answer; or the answer that the request's key already has. Throws ApiError.
   *
   * The key is not looked up first: the append finds out by itself, in its one round trip. Only where there was no
   * effect (the key was seen, or the request is refused, perhaps because of what its first sending did) is it read.
   */
  answerOnce(request: ApiRequest, operation: Operation, effect: Effect): Promise<Answer> {
    return this.once(request, operation, request.input.body, (key) => runEffect(effect, key));
  }

  /** Whether the request's key already has an answer. */
  async isKeyKnown({ caller, input }: ApiRequest): Promise<boolean> {
    return input.idempotencyKey !== null && (await this.store.findKey(caller.tokenId, input.idempotencyKey)) !== null;
  }

  /** The same for an effect that is no command: it answers its body, and throws `keyInProgress` where it is not first. */
  async once(
    request: ApiRequest,
    operation: Operation,
    content: unknown,
    perform: (key: RequestKey | null) => Promise<string>,
  ): Promise<Answer> {
    const plain = await this.plainOnce(request, operation, content, perform);
    return this.extensions.extendAnswer(request, plain);
  }

  private async plainOnce(
    request: ApiRequest,
    operation: Operation,
    content: unknown,
    perform: (key: RequestKey | null) => Promise<string>,
  ): Promise<Answer> {
    const { caller, input } = request;
    const { status } = operation;
    if (input.idempotencyKey === null) return { status, body: await perform(null), replayed: false };
    const fingerprint = await fingerprintOf(operation, input.params, content);
    const key = { tokenId: caller.tokenId, key: input.idempotencyKey, fingerprint, status };
    try {
      return { status, body: await perform(key), replayed: false };
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const stored = await this.store.findKey(key.tokenId, key.key);
      if (stored === null) throw error;
      return this.replay(request, stored, fingerprint);
    }
  }

  private async replay(request: ApiRequest, stored: StoredAnswer, fingerprint: string): Promise<Answer> {
    if (stored.fingerprint !== fingerprint) {
      throw new ApiError('key_reused', 'This Idempotency-Key was used for another request.');
    }
    // A replay passes the checks of access: what was deleted since is not found.
    if (stored.threadId !== null) {
      request.trail = { threadId: stored.threadId };
      await this.access.findVisibleThread(request.caller, stored.threadId);
    }
    if (stored.fileId !== null) await this.access.findVisibleFile(request.caller, stored.fileId);
    return { status: stored.status, body: stored.body, replayed: true };
  }
}

/** Somebody else's request with the same key holds its lock, or has just been committed. */
export const keyInProgress = () => busyNow('key_in_progress', 'A request with this Idempotency-Key is in progress.');

async function runEffect({ perform, render }: Effect, key: RequestKey | null): Promise<string> {
  let body: string | undefined;
  const result = await perform(
    key ? (handled) => ({ ...key, body: (body = JSON.stringify(render(handled))) }) : undefined,
  );
  switch (result.outcome) {
    case 'appended':
    case 'unchanged':
      return body ?? JSON.stringify(render(result));
    case 'rejected':
      throw rejectionError(result.rejection);
    case 'key_taken':
      throw keyInProgress();
    case 'conflict':
      throw threadContended();
    case 'refused':
      throw new Error(`The append of an operation without a reference was refused: ${result.reason}.`);
  }
}

/** SHA-256 of method, path with ids in upper case, and the content whatever its key order and white space. */
async function fingerprintOf(
  { method, path }: Operation,
  params: InputOf<Operation>['params'],
  content: unknown,
): Promise<string> {
  const normalPath = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(params[name]));
  const hash = createHash('sha256').update(`${method} ${normalPath}\n`);
  if (content === undefined) hash.update('undefined');
  else for await (const step of jsonSteps(content, { sorted: true })) hash.update(step);
  return hash.digest('hex');
}

/** Sends the text of the answer unchanged, so a replay without `extended` is equal byte for byte. */
export function sendAnswer(reply: FastifyReply, { status, body, replayed }: Answer): void {
  if (replayed) void reply.header('Idempotency-Replayed', 'true');
  void reply.code(status).type('application/json; charset=utf-8').send(body);
}
