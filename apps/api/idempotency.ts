import { hash } from 'node:crypto';
import type { FastifyReply } from 'fastify';
import type { InputOf, Operation } from '#contract';
import { isRejection } from '#domain';
import type { CommandOutcome, CommandRequest, Handled, StoredAnswer, ThreadStore } from '#event-store';
import type { ApiRequest } from './caller.ts';
import { ApiError, busyNow, rejectionError } from './http-errors.ts';
import type { AccessGuard } from './visible-thread.ts';

/** An operation's effect, and what it answers once the effect is stored. */
export interface Effect {
  /** Runs the commands, giving `answer` on to the CommandHandler. Throws ApiError for a refusal. */
  perform: (answer: CommandRequest['answer']) => Promise<CommandOutcome>;
  render: (handled: Handled) => object;
}

export interface Answer {
  status: number;
  body: string;
  replayed: boolean;
}

/** Decisions, section 6: one effect a key, committed together with its answer. */
export class Idempotency {
  constructor(
    private readonly store: ThreadStore,
    private readonly access: AccessGuard,
  ) {}

  /**
   * The effect and its answer; or the answer that the request's key already has. Throws ApiError.
   *
   * The key is not looked up first: the append finds out by itself, in its one round trip. Only where there was no
   * effect (the key was seen, or the request is refused, perhaps because of what its first sending did) is it read.
   */
  async answerOnce(request: ApiRequest, operation: Operation, effect: Effect): Promise<Answer> {
    const { idempotencyKey: key } = request.input;
    if (key === null) return this.answer(operation, effect);
    const keyed = { key, tokenId: request.caller.tokenId, fingerprint: fingerprintOf(operation, request.input) };
    try {
      return await this.answer(operation, effect, keyed);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const stored = await this.store.findKey(keyed.tokenId, key);
      if (stored === null) throw error;
      return this.replay(request, stored, keyed.fingerprint);
    }
  }

  private async answer(
    { status }: Operation,
    { perform, render }: Effect,
    keyed?: { key: string; tokenId: string; fingerprint: string },
  ): Promise<Answer> {
    let body: string | undefined;
    const outcome = await perform(
      keyed && ((handled) => ({ ...keyed, status, body: (body = JSON.stringify(render(handled))) })),
    );
    if (isRejection(outcome)) throw rejectionError(outcome);
    switch (outcome.outcome) {
      case 'appended':
      case 'nothing_to_do':
        return { status, body: body ?? JSON.stringify(render(outcome)), replayed: false };
      case 'key_in_progress':
      case 'key_seen':
        throw busyNow('A request with this Idempotency-Key is in progress.');
      case 'conflict':
        throw busyNow('The Thread is changing too quickly.');
      case 'files_refused':
      case 'files_full':
        throw new Error('An operation without files was refused for them.');
    }
  }

  private async replay(request: ApiRequest, stored: StoredAnswer, fingerprint: string): Promise<Answer> {
    if (stored.fingerprint !== fingerprint) {
      throw new ApiError('idempotency_conflict', 'This Idempotency-Key was used for another request.');
    }
    // A replay passes the checks of access: what was deleted since is not found.
    if (stored.threadId !== null) {
      request.trail = { threadId: stored.threadId };
      await this.access.findVisibleThread(request.caller, stored.threadId);
    }
    return { status: stored.status, body: stored.body, replayed: true };
  }
}

/** SHA-256 of method, path with ids in upper case, and the body whatever its key order and white space. */
function fingerprintOf({ method, path }: Operation, { params, body }: InputOf<Operation>): string {
  const normalPath = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => String(params[name]));
  return hash('sha256', `${method} ${normalPath}\n${canonicalJson(body)}`);
}

function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (typeof part !== 'object' || part === null || Array.isArray(part)) return part;
    return Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** Sends the answer's text as it stands: a replay is equal byte for byte. */
export function sendAnswer(reply: FastifyReply, { status, body, replayed }: Answer): void {
  if (replayed) void reply.header('Idempotency-Replayed', 'true');
  void reply.code(status).type('application/json; charset=utf-8').send(body);
}
