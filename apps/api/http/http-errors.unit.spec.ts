import { errorCodes } from 'fastify';
import { ERROR_REASONS, ERRORS, REASON_HEADER, type ErrorReason } from '#contract';
import { REJECTIONS, reject, type RejectionCode } from '#domain';
import { BlobStoreUnavailable } from '#files';
import { DatabaseUnavailable } from '#platform';
import { agentError, ApiError, errorEnvelope, refusalError, toApiError } from './http-errors.ts';

const codes = Object.keys(REJECTIONS) as RejectionCode[];

it.each(codes)('maps %s to a 4xx if a caller can cause it', (code) => {
  const error = refusalError({ reason: 'rejected', rejection: reject(code) });
  const callersCannot = ['thread_exists', 'stale_dispatch', 'stale_attempt', 'illegal_transition'].includes(code);
  expect(error instanceof ApiError).toBe(!callersCannot);
  if (error instanceof ApiError) expect([error.message, error.status < 500]).toEqual([REJECTIONS[code], true]);
});

it('gives each refusal of the domain a different reason', () => {
  const errors = codes
    .map((code) => refusalError({ reason: 'rejected', rejection: reject(code) }))
    .filter((error) => error instanceof ApiError);
  expect(new Set(errors.map(({ reason }) => reason)).size).toBe(errors.length);
});

it.each(Object.keys(ERROR_REASONS) as ErrorReason[])(
  'returns %s as the reason header, with its code and status',
  (reason) => {
    const error = new ApiError(reason, 'why', { headers: { 'Retry-After': '1' } });
    const { code, status } = ERROR_REASONS[reason];
    expect([error.code, error.status, error.headers]).toEqual([
      code,
      status,
      { [REASON_HEADER]: reason, 'Retry-After': '1' },
    ]);
    expect(errorEnvelope(error)).toEqual({ error: { code, message: 'why' } });
  },
);

it.each([
  ['FST_ERR_CTP_BODY_TOO_LARGE', 413, 'body_too_large'],
  ['FST_ERR_CTP_INVALID_MEDIA_TYPE', 415, 'unsupported_media_type'],
  ['FST_ERR_BAD_URL', 400, 'invalid_url'],
  ['FST_ERR_CTP_INVALID_CONTENT_LENGTH', 400, 'invalid_http'],
])('treats %s of Fastify as an error of the caller', (code, statusCode, reason) => {
  const refusal = toApiError(Object.assign(new Error('x'), { code, statusCode }));
  expect([refusal.status, refusal.reason]).toEqual([statusCode, reason]);
});

/** Unknown paths are refused by a hook, and no header is as long as the longest parameter (http-adapter.ts). */
const UNREACHABLE = ['FST_ERR_NOT_FOUND', 'FST_ERR_MAX_PARAM_LENGTH'];
const reachable = Object.entries(errorCodes).filter(
  ([code, Code]) => (new Code().statusCode ?? 500) < 500 && !UNREACHABLE.includes(code),
);

it.each(reachable)('returns the status of Fastify for %s', (_, Code) => {
  const error = new Code();
  expect(toApiError(error).status).toBe(error.statusCode);
});

it('returns the reason why a service is inactive', () => {
  const reasons = [true, false].map((apiEnabled) => agentError('service_inactive', { apiEnabled }).reason);
  expect(reasons).toEqual(['no_live_version', 'api_access_off']);
});

it.each([
  ['DatabaseUnavailable', new DatabaseUnavailable(new Error('ECONNREFUSED 10.0.0.1'))],
  ['a broken connection', new Error('Connection terminated unexpectedly')],
  ['no connection within 2 s', new Error('timeout exceeded when trying to connect')],
])('returns 503 with Retry-After for %s', (_, error) => {
  const { status, code, reason, headers, message } = toApiError(error);
  expect([status, code, reason]).toEqual([503, 'internal_error', 'database_unavailable']);
  expect(headers['Retry-After']).toBe('1');
  expect(message).not.toContain('10.0.0.1');
});

it('returns 503 with Retry-After if the file storage does not work', () => {
  const { status, reason, headers, message } = toApiError(new BlobStoreUnavailable(new Error('EIO /var/blobs')));
  expect([status, reason, headers['Retry-After']]).toEqual([503, 'storage_unavailable', '1']);
  expect(message).not.toContain('/var/blobs');
});

it.each([
  new Error('duplicate key value: (secret)'),
  'a string',
  undefined,
  null,
  Object.assign(new Error('secret'), { statusCode: 400 }),
])('returns 500 without the cause for an unknown error: %p', (error) => {
  const refusal = toApiError(error);
  expect(refusal.status).toBe(ERRORS.internal_error.status);
  expect(errorEnvelope(refusal)).toEqual({
    error: { code: 'internal_error', message: 'Internal error. Report the X-Request-Id to the operator.' },
  });
});
