import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { z } from 'zod';
import type { Authenticator } from '#access';
import { idempotencyKey, type InputOf, type Operation } from '#contract';
import { ApiError, unauthenticated } from './http-errors.ts';

/**
 * What every operation checks before its method runs, in the order of decisions, section 2: token, path and query, then
 * the body. As hooks of Fastify and not as guards and pipes of Nest, which run after the body was read: a caller without
 * a token must not make us read 8 MiB, and a wrong path comes before a wrong body.
 */
export function installRequestChecks(fastify: FastifyInstance, authenticator: Authenticator): void {
  fastify.decorateRequest('caller', null);
  fastify.decorateRequest('input', null);
  fastify.decorateRequest('trail', null);

  fastify.addHook('onRequest', async (request) => {
    const { operation } = request.routeOptions.config;
    if (operation === undefined) return;
    request.caller = await authenticator.authenticate(request.headers.authorization);
    if (request.caller === null) throw unauthenticated();
    // The rate limit goes here: between the token, which it counts by, and everything that costs.
    const input = parseHead(operation, request);
    request.input = input;
    request.trail = { ...input.params };
  });

  fastify.addHook('preHandler', (request, _reply, done) => {
    const { operation } = request.routeOptions.config;
    if (operation?.body) (request.input as InputOf<Operation>).body = parse(operation.body, request.body, 'body');
    done();
  });

  // Only JSON, only UTF-8: every other content type is 415.
  fastify.removeAllContentTypeParsers();
  fastify.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      done(null, parseJson(body as Buffer));
    } catch {
      done(new ApiError('invalid_json', 'The body is not JSON in UTF-8.'));
    }
  });
}

function parseJson(body: Buffer): unknown {
  // Decoding replaces what is not UTF-8, silently.
  if (!isUtf8(body)) throw new SyntaxError('not UTF-8');
  return JSON.parse(body.toString());
}

function parseHead({ params, query, takesIdempotencyKey }: Operation, request: FastifyRequest): InputOf<Operation> {
  const key = takesIdempotencyKey ? request.headers['idempotency-key'] : undefined;
  return {
    params: parse(params, request.params, 'path'),
    query: parse(query, request.query, 'query'),
    body: undefined,
    idempotencyKey: key === undefined ? null : parse(idempotencyKey, key, 'Idempotency-Key'),
  };
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string): z.output<Schema> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new ApiError('invalid_request', describeIssues(parsed.error.issues, place));
}

const MAX_ISSUES = 5;
const MAX_MESSAGE_LENGTH = 500;

/** What is wrong and where, for the caller's engineers. Bounded: the names of unknown fields are the caller's. */
function describeIssues(issues: readonly z.core.$ZodIssue[], place: string): string {
  const told = issues.slice(0, MAX_ISSUES).map(({ path, message }) => `${[place, ...path].join('.')}: ${message}`);
  if (issues.length > MAX_ISSUES) told.push(`and ${issues.length - MAX_ISSUES} more`);
  const message = told.join('; ');
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}
