import type { FastifyRequest } from 'fastify';
import type { Caller } from '#access';
import type { AdminOperation, InputOf, Operation } from '#contract';

/**
 * A request once the hooks of request-checks.ts have passed it: the caller is authenticated, path, query and body are
 * parsed by the operation's schemas. Routes take it by `@Req()`.
 */
export type ApiRequest<O extends Operation = Operation> = FastifyRequest & {
  caller: Caller;
  input: InputOf<O>;
};

/** Returns the caller's id in events: the person's, or the token's if there is none. */
export function callerId(caller: Caller): string {
  return caller.kind === 'person' ? caller.personId : caller.tokenId;
}

/** What the request turned out to be about, for its line in the log. */
export interface Trail {
  threadId?: string | undefined;
  runId?: string | undefined;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null on routes without a token. */
    caller: Caller | null;
    input: unknown;
    trail: Trail | null;
  }
  interface FastifyContextConfig {
    operation?: Operation;
    /** Of a route for operators. */
    adminOperation?: AdminOperation;
    /** What it answers is for who asks, now: unless it says otherwise nobody is to keep it. */
    isPrivate?: boolean;
  }
}
