import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { Caller } from '#access';
import type { InputOf, Operation } from '#contract';
import type { KeyedAnswer, RequestAnswer, StoredAnswer, ThreadStore } from '#event-store';
import { jsonSteps } from '#platform';
import type { ApiRequest } from './http/caller.ts';
import type { Extensions } from './extensions.ts';
import { ApiError, isRefusal } from './http/http-errors.ts';
import type { AccessGuard } from './access-guard.ts';

/** The status of the answer to a request, with the key of the request, if any, and its fingerprint. */
export type RequestKey = Omit<KeyedAnswer, 'body'> | { key?: undefined; status: number };

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** Performs a request once for each key. One commit has the effect and its answer (docs/spec/decisions.md#idempotency). */
export class Idempotency {
  constructor(
    private readonly store: ThreadStore,
    private readonly access: AccessGuard,
    private readonly extensions: Extensions,
  ) {}

  /** Returns whether the key of the request already has an answer. */
  async isKeyKnown({ caller, input }: ApiRequest): Promise<boolean> {
    const { idempotencyKey: key } = input;
    return key !== null && (await this.store.findKey(caller.tokenId, scopedKey(caller, key))) !== null;
  }

  /**
   * Returns the answer of the effect, or the stored answer of the key. Throws what the effect throws, and ApiError.
   *
   * Does not look up the key first, because the commit of the effect checks it in the same round trip. Reads it only if there
   * was no effect. Then the key was taken, or the request was refused, perhaps because it had already been performed.
   */
  async settle(request: ApiRequest, key: RequestKey, effect: Promise<{ body: string }>): Promise<Answer> {
    return this.extensions.extendAnswer(request, await this.answerOf(request, key, effect));
  }

  private async answerOf(request: ApiRequest, key: RequestKey, effect: Promise<{ body: string }>): Promise<Answer> {
    try {
      const { body } = await effect;
      return { status: key.status, body, replayed: false };
    } catch (error) {
      if (key.key === undefined || !isRefusal(error)) throw error;
      const stored = await this.store.findKey(key.tokenId, key.key);
      if (stored === null) throw error;
      return this.replay(request, stored, key.fingerprint);
    }
  }

  private async replay(request: ApiRequest, stored: StoredAnswer, fingerprint: string): Promise<Answer> {
    if (stored.fingerprint !== fingerprint) {
      throw new ApiError('key_reused', 'This Idempotency-Key was used for another request.');
    }
    // Checks access for a replay too. An object deleted in the meantime is not found.
    if (stored.threadId !== null) {
      request.trail = { threadId: stored.threadId };
      await this.access.findVisibleThread(request.caller, stored.threadId);
    }
    if (stored.fileId !== null) await this.access.findVisibleFile(request.caller, stored.fileId);
    return { status: stored.status, body: stored.body, replayed: true };
  }
}

/**
 * Returns the key of the request, with the fingerprint of its operation and content. Without a key, returns only the status of
 * the answer.
 */
export async function requestKey(
  { caller, input: { idempotencyKey: key, params } }: ApiRequest,
  operation: Operation,
  content: unknown,
): Promise<RequestKey> {
  const { status } = operation;
  if (key === null) return { status };
  const fingerprint = await fingerprintOf(operation, params, content);
  return { tokenId: caller.tokenId, key: scopedKey(caller, key), fingerprint, status };
}

/**
 * Returns the key as it is stored for the caller's token. Users with browser tokens have separate keys: a renewed token replays
 * them, and those of another user never match. A header cannot contain a line feed, so no other key equals one of a user.
 */
function scopedKey(caller: Caller, key: string): string {
  return caller.kind === 'browser' ? `${caller.userKey}\n${key}` : key;
}

/** Returns the answer to store with its effect and then to send. It is built once, so that a replay has the same bytes. */
export function answerOf(key: RequestKey, answer: object): RequestAnswer {
  return { ...key, body: JSON.stringify(answer) };
}

/** Returns the SHA-256 of method, path with ids in upper case, and content. Ignores its key order and white space. */
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
