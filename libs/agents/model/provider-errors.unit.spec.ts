import { APICallError } from '@ai-sdk/provider';
import type { RunErrorCode } from '#domain';
import { HarnessError } from '../harness.ts';
import type { ModelChoice } from './model-settings.ts';
import { providerError } from './provider-errors.ts';
import { REPORTED } from './reported-error.ts';
import { UnreadableAnswer } from './tolerant-answer.ts';
import { ProviderSilent, StreamCut } from './watched-stream.ts';

const now = Date.parse('2026-11-22T10:00:00Z');
const apiKey = 'sk-0123456789';
const modelAt = (baseUrl: string, provider: ModelChoice['provider'] = 'openai-compatible') =>
  ({ provider, name: 'm', baseUrl, silenceMs: 1 }) satisfies ModelChoice;
const known = { apiKey, now, waitedMs: 0, model: modelAt('https://models.example.com') };
const requestBodyValues = { messages: ['PRIVATE'] };
const url = 'https://models.example.com';

const refusal = (statusCode: number, body: unknown, responseHeaders: Record<string, string> = {}) =>
  new APICallError({
    message: 'Refused',
    url,
    requestBodyValues,
    statusCode,
    responseHeaders,
    responseBody: typeof body === 'string' ? body : JSON.stringify(body),
  });

const openAi = (status: number, error: object) => refusal(status, { error: { message: 'x', ...error } });
const anthropic = (status: number, type: string, message = 'x') =>
  refusal(status, { type: 'error', error: { type, message } });

const gemini = (code: number, message: string) =>
  refusal(code, [{ error: { code, message, status: 'INVALID_ARGUMENT' } }]);

const reported = (body: unknown) => ({ type: REPORTED, message: JSON.stringify(body) });

const codeOf = (error: unknown) => providerError(error, known).code;

const CASES: Record<string, [RunErrorCode, unknown][]> = {
  'refusals by their status': [
    ['provider_auth', refusal(401, '')],
    ['provider_auth', refusal(403, '<html>')],
    ['provider_quota_exhausted', refusal(402, '')],
    ['provider_rate_limited', refusal(429, '')],
    ['context_too_long', refusal(413, '')],
    ['provider_rejected', refusal(400, '')],
    ['provider_rejected', refusal(404, '<html>')],
    ['provider_rejected', refusal(422, '')],
    ['provider_rejected', refusal(304, '')],
    ...[408, 409, 425, 500, 502, 503, 504, 529].map((status): [RunErrorCode, unknown] => [
      'provider_unavailable',
      refusal(status, ''),
    ]),
  ],
  'refusals by their words': [
    ['context_too_long', openAi(400, { code: 'context_length_exceeded' })],
    ['context_too_long', openAi(400, { message: "This model's maximum context length is 8192 tokens." })],
    ['context_too_long', refusal(400, { object: 'error', message: 'maximum context length', type: 'BadRequestError' })],
    // Only the beginning of a long message is searched.
    ['provider_rejected', openAi(400, { message: `${'x'.repeat(64 * 1024)} maximum context length` })],
    ['context_too_long', openAi(500, { message: 'the request exceeds the available context size' })],
    ['context_too_long', anthropic(400, 'invalid_request_error', 'prompt is too long: 210000 tokens > 200000 maximum')],
    [
      'context_too_long',
      anthropic(400, 'invalid_request_error', 'input length and `max_tokens` exceed context limit: 190000 + 64000'),
    ],
    ['provider_quota_exhausted', openAi(429, { type: 'insufficient_quota', code: 'insufficient_quota' })],
    [
      'provider_quota_exhausted',
      anthropic(400, 'invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
    ],
    ['content_filtered', openAi(400, { code: 'content_filter' })],
    ['content_filtered', anthropic(400, 'invalid_request_error', 'Output blocked by content filtering policy')],
    [
      'context_too_long',
      gemini(400, 'The input token count (1200000) exceeds the maximum number of tokens allowed (1).'),
    ],
    ['context_too_long', openAi(400, { message: '<400> Range of input length should be [1, 129024]' })],
    ['context_too_long', refusal(400, { message: 'Input is too long for requested model.' })],
    ['provider_auth', gemini(400, 'API key not valid. Please pass a valid API key.')],
    ['provider_rejected', gemini(400, 'Request contains an invalid argument.')],
    ['provider_rejected', refusal(400, [])],
    ['provider_unavailable', openAi(500, { message: 'Invalid API key' })],
    ['provider_rejected', refusal(400, { error: 'model "x" is unknown' })],
    // A limit on tokens a minute is no limit of the window.
    ['provider_rate_limited', openAi(429, { message: 'Request exceeds the context limit of a minute' })],
  ],
  'errors amid a stream': [
    ['provider_unavailable', reported({ type: 'overloaded_error', message: 'Overloaded' })],
    ['provider_unavailable', reported({ type: 'api_error', message: 'Internal' })],
    ['provider_unavailable', reported(null)],
    ['provider_rate_limited', reported({ type: 'error', error: { type: 'rate_limit_error', message: 'x' } })],
    ['provider_rejected', reported({ type: 'invalid_request_error', message: 'x' })],
    ['context_too_long', reported({ message: 'prompt is too long' })],
    ['provider_auth', reported({ error: { type: 'authentication_error', message: 'x' } })],
  ],
  'errors amid a stream by their codes': [
    ['provider_unavailable', reported({ error: { message: 'no idea', code: 500 } })],
    ['provider_unavailable', reported({ error: { message: 'Provider returned error', code: 502 } })],
    ['provider_unavailable', reported({ error: { message: 'x', code: '408' } })],
    ['provider_rejected', reported({ error: { message: 'x', code: 400, type: 'BadRequestError' } })],
    ['provider_rejected', reported({ object: 'error', message: 'x', type: 'NotFoundError', code: 404 })],
    ['provider_rejected', reported({ object: 'error', message: 'x', type: 'BadRequestError' })],
    ['provider_quota_exhausted', reported({ error: { message: 'Payment required', code: 402 }, choices: [] })],
    ['provider_rate_limited', reported({ error: { message: 'x', code: '429' } })],
    ['provider_rate_limited', reported({ message: 'x', statusCode: 429 })],
    ['provider_auth', reported({ error: { message: 'x', status: 401 } })],
    ['provider_rejected', reported({ error: { error: { code: 400 } } })],
    ['provider_rejected', reported({ error: { message: 'x', error: { error: { code: 500 }, code: 400 } } })],
    ['provider_rejected', reported([{ error: { code: 400, message: 'x' } }])],
    ['provider_rejected', reported({ http_status: 400, message: 'x' })],
    ['provider_rejected', reported({ error: { message: "Error code: 400 - {'error': {}}" } })],
    ['provider_rate_limited', reported({ error: 'Error code: 429 - slow down' })],
    ['provider_unavailable', reported({ error: { code: 503, type: 'BadRequestError' } })],
    // No statuses of errors.
    ['provider_unavailable', reported({ error: { message: 'Error code: 300' } })],
    ['provider_unavailable', reported({ error: { message: 'It was not error code: 400' } })],
    ['provider_unavailable', reported({ error: { message: 'x', code: 200 } })],
    ['provider_unavailable', reported({ error: { message: 'x', code: 1113 } })],
  ],
  'errors amid a stream by one word': [
    ...(['PermissionDeniedError', 'permission_denied_error', 'AccessDeniedException'] as const).map(
      (type): [RunErrorCode, unknown] => ['provider_auth', reported({ error: { message: 'x', type } })],
    ),
    ...['UnprocessableEntityError', 'ValidationException', 'invalid_parameter_error'].map(
      (type): [RunErrorCode, unknown] => ['provider_rejected', reported({ error: { message: 'x', type } })],
    ),
    ...['model_not_found', 'invalid_prompt', 'unsupported_value'].map((code): [RunErrorCode, unknown] => [
      'provider_rejected',
      reported({ error: { message: 'x', code } }),
    ]),
    ...Object.entries({
      INVALID_ARGUMENT: 'provider_rejected',
      NOT_FOUND: 'provider_rejected',
      FAILED_PRECONDITION: 'provider_rejected',
      PERMISSION_DENIED: 'provider_auth',
      UNAUTHENTICATED: 'provider_auth',
      RESOURCE_EXHAUSTED: 'provider_rate_limited',
      UNAVAILABLE: 'provider_unavailable',
      DEADLINE_EXCEEDED: 'provider_unavailable',
      INTERNAL: 'provider_unavailable',
    } as const).map(([status, code]): [RunErrorCode, unknown] => [code, reported({ error: { message: 'x', status } })]),
    ['context_too_long', reported({ error: { message: 'x', type: 'ContextWindowExceededError' } })],
    ['content_filtered', reported({ error: { message: 'x', type: 'ContentPolicyViolationError' } })],
    // As for a refusal, a limit on tokens a minute is no limit of the window.
    [
      'provider_rate_limited',
      reported({ error: { message: 'This exceeds the context limit of a minute', type: 'rate_limit_error' } }),
    ],
  ],
  'what broke': [
    ['provider_unavailable', new ProviderSilent(50)],
    ['provider_unavailable', new StreamCut('cut')],
    ['provider_rejected', new UnreadableAnswer('no event')],
    [
      'provider_unavailable',
      new TypeError('terminated', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) }),
    ],
    ['provider_unavailable', new Error('anything')],
    ['provider_rejected', Object.assign(new Error('10.0.0.1 is private'), { name: 'AddressRefused' })],
    [
      'provider_rejected',
      new TypeError('fetch failed', { cause: Object.assign(new Error('private'), { name: 'AddressRefused' }) }),
    ],
    ['output_too_large', new HarnessError('output_too_large')],
  ],
};

describe.each(Object.entries(CASES))('%s', (_, cases) => {
  it.each(cases)('%s', (code, error) => {
    expect(codeOf(error)).toBe(code);
  });
});

describe('the error', () => {
  it('says when to come back only where that may help', () => {
    const headers = { 'retry-after': '7' };
    expect(providerError(refusal(503, '', headers), known).more.retryAfterMs).toBe(7_000);
    expect(providerError(refusal(429, '', headers), known).more.retryAfterMs).toBe(7_000);
    expect(providerError(refusal(400, '', headers), known).more).not.toHaveProperty('retryAfterMs');
    const reset = { 'anthropic-ratelimit-tokens-reset': '2026-11-22T10:00:10Z' };
    expect(providerError(refusal(429, '', reset), known).more.retryAfterMs).toBe(10_000);
    expect(providerError(refusal(529, '', reset), known).more).not.toHaveProperty('retryAfterMs');
  });

  it('has a cause for the log that tells status, type, code and message, shortly and without the key', () => {
    const error = openAi(400, { type: 'bad', code: 7, message: `${apiKey} ${'x'.repeat(280)}${apiKey}` });
    const { cause } = providerError(error, known);
    expect(cause).toBeInstanceOf(Error);
    const { message } = cause as Error;
    expect(message).toMatch(/^HTTP 400 bad 7 \[key\] x+/);
    expect(message.length).toBeLessThanOrEqual(300);
    expect(message).not.toContain('sk-0');
    expect((cause as Error).cause).toBeUndefined();
  });

  it('reports what is known of the response, without the key', () => {
    const error = { type: 'overloaded', code: 'busy', message: `Try ${apiKey} later.\0${'x'.repeat(600)}` };
    const headers = { 'x-request-id': `req_${apiKey}` };
    const { report } = providerError(refusal(503, { error }, headers), { ...known, waitedMs: 12.3 }).more;
    expect(report).toEqual({
      ...{ source: 'provider', name: 'models.example.com', status: 503, type: 'overloaded', code: 'busy' },
      ...{
        requestId: 'req_[key]',
        message: expect.stringMatching(/^Try \[key\] later\.x{480,}$/) as string,
        waitedMs: 12,
      },
    });
    expect(report?.message).toHaveLength(500);
  });

  it.each([
    ['The server is overloaded', 'The server is overloaded'],
    ['<html>busy</html>', 'Refused'],
  ])('reports the message of a response that is not JSON: %s', (body, message) => {
    expect(providerError(refusal(503, body), known).more.report).toMatchObject({ status: 503, message });
  });

  it('reports the code of a network', () => {
    const refused = new TypeError('x', { cause: Object.assign(new Error('x'), { code: 'ECONNREFUSED' }) });
    const expected = { source: 'provider', name: 'models.example.com', type: 'TypeError', code: 'ECONNREFUSED' };
    expect(providerError(refused, known).more.report).toMatchObject(expected);
  });

  it('has a cause that tells what Gemini says in a list', () => {
    const error = gemini(400, 'Request contains an invalid argument.');
    const told = 'Error: HTTP 400 invalid_argument Request contains an invalid argument.';
    expect(String(providerError(error, known).cause)).toBe(told);
  });

  it('names the fault of a network, and not what an answer said', () => {
    const reset = new TypeError('terminated', { cause: Object.assign(new Error('x'), { code: 'ECONNRESET' }) });
    expect(String(providerError(reset, known).cause)).toBe('Error: TypeError (ECONNRESET)');
    const broken = new SyntaxError('JSON parsing failed: Text: PRIVATE');
    expect(String(providerError(broken, known).cause)).toBe('Error: SyntaxError');
  });

  it.each<[what: string, error: APICallError | Error, model: ModelChoice, told: string]>([
    [
      'a page that is missing',
      refusal(404, '<html>'),
      modelAt('http://127.0.0.1:1/'),
      'POST http://127.0.0.1:1/chat/completions: HTTP 404 Refused. Check model.baseUrl: Spool adds /chat/completions to it, so it often ends with /v1.',
    ],
    [
      'a method that is refused, without secrets of the URL',
      refusal(405, { detail: 'Method Not Allowed' }),
      modelAt(`https://user:PRIVATE@example.com/${apiKey}?key=PRIVATE`, 'anthropic'),
      'POST https://example.com/[key]: HTTP 405 Method Not Allowed. Check model.baseUrl: Spool adds /messages to it, so it often ends with /v1.',
    ],
    [
      'a web page with 200',
      new UnreadableAnswer('The response has no event of its protocol.'),
      modelAt('https://example.com'),
      'POST https://example.com/chat/completions: unreadable The response has no event of its protocol. Check model.baseUrl: Spool adds /chat/completions to it, so it often ends with /v1.',
    ],
    [
      'a model that is missing, without the question',
      openAi(404, { message: 'model "m" not found' }),
      modelAt('https://example.com'),
      'POST https://example.com/chat/completions: HTTP 404 model "m" not found',
    ],
  ])('has a cause with the URL for %s', (_, error, model, told) => {
    expect(String(providerError(error, { ...known, model }).cause)).toBe(`Error: ${told}`);
  });
});
