import type { z } from 'zod';
import {
  countCharacters,
  createThreadBody,
  idempotencyKey,
  LIMITS,
  listEventsQuery,
  listRunsQuery,
  listThreadsQuery,
  sendEventsBody,
  streamEventsQuery,
  ulid,
} from './index.ts';

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';

const accepts = (schema: z.ZodType, value: unknown) => schema.safeParse(value).success;

it.each(['', 'ab', '😀', 'a😀b', '\ud83d', '\ude00\ud83d', '\ud83d\ud83d\ude00\ude00', 'é'.repeat(3)])(
  'counts the Unicode characters of %j',
  (text) => {
    expect(countCharacters(text)).toBe([...text].length);
  },
);

/** Bodies by the one field that a case is about. */
const withUserId = (userId: unknown) => ({ userId });
const withText = (text: unknown) => ({
  userId: 'u',
  input: { type: 'user.message', content: [{ type: 'text', text }] },
});
const withParts = (count: number) => ({
  userId: 'u',
  input: { type: 'user.message', content: Array.from({ length: count }, () => ({ type: 'text', text: 'a' })) },
});
const files = (count: number) => Array.from({ length: count }, () => ({ type: 'file', file_id: ID }));
const event = (fields: object) => ({ events: [fields] });
const message = (fields: object) => event({ type: 'user_message', text: 'a', ...fields });
const decision = (fields: object) =>
  event({ type: 'permission_decision', requestId: 'r', decision: 'allow_once', ...fields });
const batch = (count: number) => ({ events: Array.from({ length: count }, () => ({ type: 'user_interrupt' })) });

describe('lengths, each limit and one past it', () => {
  it.each([
    ['userId', createThreadBody, withUserId, 1, LIMITS.userId],
    ['a part of the first message', createThreadBody, withText, 1, LIMITS.initialText],
    ['user_message.text', sendEventsBody, (text: unknown) => message({ text }), 1, LIMITS.messageText],
    ['user_message.requestId', sendEventsBody, (requestId: unknown) => message({ requestId }), 0, LIMITS.requestId],
    [
      'permission_decision.requestId',
      sendEventsBody,
      (requestId: unknown) => decision({ requestId }),
      1,
      LIMITS.requestId,
    ],
  ] as const)('%s', (_, schema, body, min, max) => {
    expect(accepts(schema, body('a'.repeat(min)))).toBe(true);
    expect(accepts(schema, body('a'.repeat(max)))).toBe(true);
    expect(accepts(schema, body('a'.repeat(max + 1)))).toBe(false);
    if (min > 0) expect(accepts(schema, body('a'.repeat(min - 1)))).toBe(false);
    // A character is a code point, with one or two units of UTF-16.
    expect(accepts(schema, body('😀'.repeat(max)))).toBe(true);
    expect(accepts(schema, body('😀'.repeat(max) + 'a'))).toBe(false);
    expect(accepts(schema, body(7))).toBe(false);
  });

  it.each([
    ['Idempotency-Key', idempotencyKey, (count: number) => 'k'.repeat(count), 1, LIMITS.idempotencyKey],
    ['events', sendEventsBody, batch, 1, LIMITS.eventsABatch],
    ['input.content', createThreadBody, withParts, 1, LIMITS.initialParts],
    [
      'resources',
      createThreadBody,
      (count: number) => ({ userId: 'u', resources: files(count) }),
      0,
      LIMITS.filesAThread,
    ],
  ] as const)('%s', (_, schema, body, min, max) => {
    expect(accepts(schema, body(min))).toBe(true);
    expect(accepts(schema, body(max))).toBe(true);
    expect(accepts(schema, body(max + 1))).toBe(false);
    if (min > 0) expect(accepts(schema, body(min - 1))).toBe(false);
  });

  it('reports a list that is too long once, not each of its items', () => {
    const issues = sendEventsBody.safeParse({ events: Array.from({ length: 100_000 }, () => ({})) }).error?.issues;
    expect(issues).toHaveLength(1);
  });
});

describe('text', () => {
  it.each(['a\0', '\uD800', 'a\uDC00b', '\uDC00\uD800'])('refuses %j', (text) => {
    expect(accepts(createThreadBody, withUserId(text))).toBe(false);
    expect(accepts(createThreadBody, withText(text))).toBe(false);
    expect(accepts(sendEventsBody, message({ text }))).toBe(false);
    expect(accepts(sendEventsBody, message({ requestId: text }))).toBe(false);
  });

  it.each(['😀', ' ', '\n', '\u{10FFFF}', 'é'])('accepts %j', (text) => {
    expect(accepts(createThreadBody, withText(text))).toBe(true);
  });
});

describe('runStatus', () => {
  it.each([
    ['failed', ['failed']],
    ['waiting_input,failed', ['waiting_input', 'failed']],
    ['failed,completed,failed', ['failed', 'completed']],
    ['failed,'.repeat(1_000) + 'queued', ['failed', 'queued']],
  ])('reads a list of statuses', (runStatus, expected) => {
    expect(listThreadsQuery.parse({ runStatus }).runStatus).toEqual(expected);
  });

  it.each(['', ',', 'failed,', 'failed, queued', 'FAILED', 'idle', ['failed', 'queued'], null])(
    'rejects %j with one issue',
    (runStatus) => {
      const issues = listThreadsQuery.safeParse({ runStatus }).error?.issues;
      expect(issues).toMatchObject([{ path: ['runStatus'] }]);
      expect(issues?.[0]?.message).toMatch(/^must be a comma-separated list of queued, booting, running, /);
    },
  );
});

describe('shapes', () => {
  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a list', []],
    ['an unknown field', { userId: 'u', title: 't' }],
    ['an older name', { userId: 'u', client_external_ref: 'x' }],
    ['__proto__', JSON.parse('{"userId":"u","__proto__":{}}')],
    ['a null input', { userId: 'u', input: null }],
    ['an unknown field of the input', { userId: 'u', input: { type: 'user.message', content: [], role: 'user' } }],
    ['another input', { userId: 'u', input: { type: 'user_message', content: [{ type: 'text', text: 'a' }] } }],
    ['another part', { userId: 'u', input: { type: 'user.message', content: [{ type: 'image', text: 'a' }] } }],
    ['another resource', { userId: 'u', resources: [{ type: 'url', file_id: ID }] }],
    ['no file id', { userId: 'u', resources: [{ type: 'file', file_id: 'x' }] }],
  ])('refuses a Thread with %s', (_, body) => {
    expect(accepts(createThreadBody, body)).toBe(false);
  });

  it.each([
    ['no type', event({ text: 'a' })],
    ['another type', event({ type: 'user.message', text: 'a' })],
    ['no text', event({ type: 'user_message' })],
    ['an older name', message({ clientRequestId: 'x' })],
    ['a field of another variant', message({ decision: 'allow_once' })],
    ['another decision', decision({ decision: 'allow' })],
    ['a null requestId of a decision', decision({ requestId: null })],
    ['a runId that is none', event({ type: 'user_interrupt', runId: 'x' })],
    ['a field beside the events', { events: [{ type: 'user_interrupt' }], dryRun: true }],
    ['events that are no list', { events: { type: 'user_interrupt' } }],
  ])('refuses a batch with %s', (_, body) => {
    expect(accepts(sendEventsBody, body)).toBe(false);
  });

  it('accepts what may be null or left out', () => {
    expect(accepts(createThreadBody, { userId: 'u' })).toBe(true);
    expect(accepts(sendEventsBody, message({ requestId: null, resources: [] }))).toBe(true);
    expect(accepts(sendEventsBody, event({ type: 'user_interrupt', runId: null }))).toBe(true);
    expect(accepts(sendEventsBody, event({ type: 'user_interrupt' }))).toBe(true);
  });
});

describe('ids', () => {
  it('are accepted in either case and upper case from there on', () => {
    expect(ulid.parse(ID.toLowerCase())).toBe(ID);
    const body = sendEventsBody.parse(event({ type: 'user_interrupt', runId: ID.toLowerCase() }));
    expect(body.events).toEqual([{ type: 'user_interrupt', runId: ID }]);
  });

  it.each(['', ID.slice(1), `${ID}0`, `8${ID.slice(1)}`, `${ID.slice(1)}U`, `${ID}\n`])('refuses %j', (text) => {
    expect(accepts(ulid, text)).toBe(false);
  });
});

describe('queries', () => {
  it('have defaults', () => {
    expect(listEventsQuery.parse({})).toEqual({ limit: 100 });
    expect(listRunsQuery.parse({})).toEqual({ limit: 100 });
    expect(streamEventsQuery.parse({})).toEqual({ limit: 100 });
  });

  it.each([
    [listEventsQuery, 1, 1_000],
    [listRunsQuery, 1, 100],
    [streamEventsQuery, 0, 1_000],
  ])('bound limit', (schema, min, max) => {
    expect(schema.parse({ limit: String(min) }).limit).toBe(min);
    expect(schema.parse({ limit: String(max) }).limit).toBe(max);
    const wrong = [String(min - 1), String(max + 1), '', ' 5', '5.0', '1e2', '0x5', '+5', 'all', ['5', '6']];
    for (const limit of wrong) expect([limit, accepts(schema, { limit })]).toEqual([limit, false]);
  });

  it('do not take after and before together', () => {
    expect(accepts(listEventsQuery, { after: ID })).toBe(true);
    expect(accepts(listEventsQuery, { before: ID.toLowerCase() })).toBe(true);
    expect(accepts(listEventsQuery, { after: ID, before: ID })).toBe(false);
    expect(accepts(listEventsQuery, { after: 'x' })).toBe(false);
  });
});
