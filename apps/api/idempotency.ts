import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { InputOf, Operation } from '#contract';
import type { KeyedAnswer, StoredAnswer, ThreadStore } from '#event-store';
import { jsonSteps } from '#platform';
import type { ApiRequest } from './http/caller.ts';
import type { Extensions } from './extensions.ts';
import { ApiError, isRefusal } from './http/http-errors.ts';
import type { AccessGuard } from './access-guard.ts';

/** A key that a request brings, with the fingerprint of the request. */
export interface RequestKey {
  tokenId: string;
  key: string;
  fingerprint: string;
  status: number;
}

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** Performs a request once for each key. The effect and its answer are one commit (docs/spec/decisions.md#idempotency). */
export class Idempotency {
  constructor(
    private readonly store: ThreadStore,
    private readonly access: AccessGuard,
    private readonly extensions: Extensions,
  ) {}

  /** Returns whether the request's key already has an answer. */
  async isKeyKnown({ caller, input }: ApiRequest): Promise<boolean> {
    return input.idempotencyKey !== null && (await this.store.findKey(caller.tokenId, input.idempotencyKey)) !== null;
  }

  /**
   * Returns the answer that `perform` makes, or the one that the request's key already has. Throws ApiError, ThreadRefused.
   *
   * The key is not looked up first: the commit of the effect finds out by itself, in its one round trip. It is read only if
   * there was no effect: the key was taken, or the request is refused, perhaps because of what its first sending did.
   */
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
      if (!isRefusal(error)) throw error;
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

/** The text of an answer: stored with its effect, and then sent. It is made once, so that a replay has the same bytes. */
export class AnswerText<Effect> {
  private made: string | undefined;

  constructor(
    private readonly key: RequestKey | null,
    private readonly render: (effect: Effect) => object,
  ) {}

  /** For the append; undefined without a key. */
  get stored(): ((effect: Effect) => KeyedAnswer) | undefined {
    const { key } = this;
    return key === null ? undefined : (effect) => ({ ...key, body: (this.made = JSON.stringify(this.render(effect))) });
  }

  of(effect: Effect): string {
    return this.made ?? JSON.stringify(this.render(effect));
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
