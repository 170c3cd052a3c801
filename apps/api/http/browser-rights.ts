import type { FastifyRequest } from 'fastify';
import type { BrowserCaller, Caller } from '#access';
import { EVENT_VERBS, type Operation, type ThreadEventInput, type Verb } from '#contract';
import { ApiError } from './http-errors.ts';

/**
 * Checks what a browser token allows. Runs before any look-up for the request, so that a refusal reveals nothing. Throws ApiError:
 * `origin_forbidden`, then `service_token_required` or `verb_missing`.
 */
export function requireBrowserRights(
  caller: BrowserCaller,
  { verb }: Partial<Pick<Operation, 'verb'>>,
  { headers }: FastifyRequest,
): void {
  const { origin } = headers;
  if (origin !== undefined && caller.origins !== null && !caller.origins.has(origin)) {
    throw new ApiError('origin_forbidden', 'Pages of this Origin must not use this browser token.');
  }
  if (verb === null || verb === undefined)
    throw new ApiError('service_token_required', 'Only service tokens create browser tokens.');
  if (verb !== 'by_event') requireVerb(caller, verb);
}

/** Checks the verb of each event of a batch. Throws ApiError `verb_missing`. */
export function requireEventVerbs(caller: Caller, events: readonly ThreadEventInput[]): void {
  if (caller.kind === 'browser') for (const { type } of events) requireVerb(caller, EVENT_VERBS[type]);
}

/** Requires that the caller may use Threads of this user, and is not limited to one Thread. Throws ApiError `user_forbidden`. */
export function requireUser(caller: Caller, userId: string | undefined): void {
  if (caller.kind !== 'browser') return;
  if (caller.threadId !== null) throw new ApiError('user_forbidden', 'The browser token is for one Thread only.');
  if (userId !== undefined && userId !== caller.userId) {
    throw new ApiError('user_forbidden', 'The browser token is for another userId.');
  }
}

function requireVerb({ verbs }: BrowserCaller, verb: Verb): void {
  if (!verbs.has(verb)) {
    throw new ApiError('verb_missing', `The browser token does not allow this; it needs the verb "${verb}".`);
  }
}
