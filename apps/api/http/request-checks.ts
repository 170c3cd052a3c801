import multipart from '@fastify/multipart';
import { errorCodes, type FastifyInstance, type FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { RateLimiter } from '#access';
import { extended, idempotencyKey, type AdminOperation, type InputOf, type Operation } from '#contract';
import { BOUNDS } from '#domain';
import { ownTurn } from '#platform';
import type { BodyIntake } from '../bodies/body-intake.ts';
import { LARGE_BYTES } from '../bodies/parse-body.ts';
import { requireBrowserRights } from './browser-rights.ts';
import { isByCookie, type Callers } from './callers.ts';
import { removeCorsHeaders } from './cors.ts';
import { RequestCount } from './limit-rate.ts';
import { ApiError, notOperator, wrongEncoding, wrongType } from './http-errors.ts';

/**
 * Installs the checks of every operation, in this order (docs/spec/decisions.md#check-order): token, rate limit, path and
 * query, then the body. Uses hooks of Fastify, because guards and pipes of Nest run after the body was read. A caller
 * without a token must not make the server read 8 MiB, and a wrong path is reported before a wrong body.
 */
export function installRequestChecks(fastify: FastifyInstance, checkers: Checkers): void {
  const { callers, limiter, compatibility, bodies } = checkers;
  fastify.decorateRequest('caller', null);
  fastify.decorateRequest('bodyHold', null);
  fastify.decorateRequest('input', null);
  fastify.decorateRequest('trail', null);

  fastify.addHook('onRequest', async (request, reply) => {
    requireOneHost(request);
    if (request.is404 || request.method === 'OPTIONS') throw fastify.knownPaths.refuse(request);
    const operation = operationOf(request);
    if (operation === undefined) return;
    const count = new RequestCount(limiter, request, reply);
    request.caller = await callers.find(request, count);
    if (request.caller !== null && request.caller.kind !== 'browser') removeCorsHeaders(reply);
    await count.add(request.caller);
    if (request.caller === null) throw await callers.refusalOf(request);
    // In the Agent Threads API an operator is a caller without access to anything.
    if (request.routeOptions.config.adminOperation && request.caller.kind !== 'operator') throw notOperator();
    if (isByCookie(request) && operation.method !== 'GET') callers.requireOwnOrigin(request);
    if (request.caller.kind === 'browser') requireBrowserRights(request.caller, operation, request);
    const input = parseHead(operation, request);
    request.input = input;
    request.trail = { ...input.params };
    // Without a body the type is meaningless, but Fastify would look for its parser.
    if (operation.body === null && isEmpty(request)) delete request.raw.headers['content-type'];
  });

  fastify.addHook('preParsing', async (request, reply, payload) => {
    if (isCompressed(request)) throw wrongEncoding();
    const operation = operationOf(request);
    // Each operation takes at most one of the two types.
    const isUpload = /^multipart\//i.test(request.headers['content-type'] ?? '');
    const takesUpload = operation?.body === 'upload';
    const takesOther = operation !== undefined && operation.method !== 'GET' && !takesUpload;
    if (isUpload ? takesOther : takesUpload) throw wrongType(takesUpload ? 'multipart/form-data' : 'application/json');
    if (!isEmpty(request)) bodies.open(request, reply);
    if (isUpload) bodies.admitUpload(request);
    return payload;
  });

  fastify.addHook('preHandler', (request, _reply, done) => {
    const operation = operationOf(request);
    const older = compatibility ? request.routeOptions.config.operation?.compatibleBody : undefined;
    const body = older ?? operation?.body;
    if (body && body !== 'upload') (request.input as InputOf<Operation>).body = parse(body, request.body, 'body');
    // The handler of a large body takes as long as the checks, so it gets its own turn of the event loop.
    if ((request.bodyHold?.bytes ?? 0) > LARGE_BYTES) void ownTurn().then(() => done());
    else done();
  });

  // Accepts JSON in UTF-8, and files. Every other content type gets 415.
  fastify.removeAllContentTypeParsers();
  void fastify.register(multipart);
  // A chunked body can be empty. Then an operation that takes no body needs no type.
  fastify.addContentTypeParser('*', (request, payload, done) => {
    const refuse = (): void => done(new errorCodes.FST_ERR_CTP_INVALID_MEDIA_TYPE());
    if (operationOf(request)?.body !== null) return refuse();
    const end = (): void => done(null, undefined);
    payload.once('end', end).once('data', () => {
      payload.off('end', end);
      refuse();
    });
  });
  fastify.addContentTypeParser('application/json', async (request: FastifyRequest) => {
    const body = isEmpty(request) ? undefined : await bodies.readJson(request);
    // Many clients send a type without a body.
    if (body === undefined && operationOf(request)?.body) throw new errorCodes.FST_ERR_CTP_EMPTY_JSON_BODY();
    return body;
  });
}

/** An operation of either interface. Both have the same checks. */
type CheckedOperation = Operation | (AdminOperation & { takesIdempotencyKey?: undefined; verb?: null });

function operationOf({ routeOptions: { config } }: FastifyRequest): CheckedOperation | undefined {
  return config.operation ?? config.adminOperation;
}

/** Requires exactly one Host header: Node takes the first of several, a proxy may take the last. Throws ApiError. */
function requireOneHost(request: FastifyRequest): void {
  const count = countLines(request, 'host');
  if (count === 1 || (count === 0 && request.raw.httpVersion !== '1.1')) return;
  const headers = { Connection: 'close' };
  if (count === 0) throw new ApiError('host_missing', 'Host: must be sent', { headers });
  throw new ApiError('host_repeated', 'Host: must be sent only once', { headers });
}

/** Counts the lines of a header. The name must be lower case. */
const countLines = ({ raw: { rawHeaders } }: FastifyRequest, header: string): number =>
  rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === header).length;

/** Returns whether the headers say that no body follows. */
function isEmpty({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) === 0;
}

function isCompressed(request: FastifyRequest): boolean {
  const { method, headers } = request;
  // The body of a read is ignored.
  if (method === 'GET' || method === 'HEAD' || isEmpty(request)) return false;
  return !/^(identity)?$/i.test((headers['content-encoding'] ?? '').trim());
}

export interface Checkers {
  callers: Callers;
  limiter: RateLimiter;
  bodies: BodyIntake;
  /** Whether the older fields are accepted (docs/api/compatibility.md). */
  compatibility: boolean;
}

const extendedQuery = z.object({ extended });

function parseHead(
  { params, query, answer, takesIdempotencyKey }: CheckedOperation,
  request: FastifyRequest,
): InputOf<Operation> {
  // Downloads have no optional fields, so `extended` is ignored like any unknown parameter.
  const mayExtend = request.routeOptions.config.operation !== undefined && answer !== 'bytes';
  const key = takesIdempotencyKey ? request.headers['idempotency-key'] : undefined;
  // Node joins several header lines to one value, which the client never sent.
  if (key !== undefined && countLines(request, 'idempotency-key') > 1)
    throw new ApiError('invalid_field', 'Idempotency-Key: must be sent only once');
  return {
    params: parse(params, request.params, 'path'),
    query: parse(query, request.query, 'query'),
    body: undefined,
    idempotencyKey: key === undefined ? null : parse(idempotencyKey, key, 'Idempotency-Key'),
    extended: mayExtend && parse(extendedQuery, request.query, 'query').extended === 'true',
  };
}

function parse<Schema extends z.ZodType>(schema: Schema, value: unknown, place: string): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: nameFewFields });
  if (parsed.success) return parsed.data;
  throw new ApiError('invalid_field', describeIssues(parsed.error.issues, place));
}

const MAX_ISSUES = BOUNDS.requests.issues.value;
const MAX_FIELDS = BOUNDS.requests.unknownFields.value;
const MAX_MESSAGE_LENGTH = BOUNDS.requests.issueText.value;

/** Names the first unknown fields. Zod names all: 640,000 fields, in a body of 8 MiB, took more than a second. */
function nameFewFields(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== 'unrecognized_keys') return undefined;
  const names = issue.keys.slice(0, MAX_FIELDS).map((name) => `"${name}"`);
  const more = issue.keys.length > MAX_FIELDS ? ` and ${issue.keys.length - MAX_FIELDS} more` : '';
  return `Unrecognized key${issue.keys.length > 1 ? 's' : ''}: ${names.join(', ')}${more}`;
}

/** Describes what is wrong and where. Limits the length, because the caller chooses the names of unknown fields. */
function describeIssues(issues: readonly z.core.$ZodIssue[], place: string): string {
  const told = issues.slice(0, MAX_ISSUES).map(({ path, message }) => `${[place, ...path].join('.')}: ${message}`);
  if (issues.length > MAX_ISSUES) told.push(`and ${issues.length - MAX_ISSUES} more`);
  const message = told.join('; ');
  return message.length > MAX_MESSAGE_LENGTH ? `${message.slice(0, MAX_MESSAGE_LENGTH)}…` : message;
}
