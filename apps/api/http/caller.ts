import type { FastifyRequest } from 'fastify';
import type { Caller } from '#access';
import type { AdminOperation, InputOf, Operation } from '#contract';

/**
 * A request that the hooks of request-checks.ts have passed. The caller is authenticated; path, query and body are parsed
 * by the operation's schemas. Routes take it by `@Req()`.
 */
export type ApiRequest<O extends Operation = Operation> = FastifyRequest & {
  caller: Caller;
  input: InputOf<O>;
};

/** Returns the caller's id in events: the person's, or the token's if there is no person. */
export function callerId(caller: Caller): string {
  return caller.kind === 'person' ? caller.personId : caller.tokenId;
}

/** The ids that the request is about, for its log line. */
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
    /** Set on routes for operators. */
    adminOperation?: AdminOperation;
    /** Answers are for this caller and must not be stored: `no-store` unless the route sets Cache-Control. */
    isPrivate?: boolean;
  }
}
