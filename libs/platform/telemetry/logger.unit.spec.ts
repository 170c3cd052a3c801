import { context, trace, TraceFlags } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { ReplyError } from 'ioredis';
import { DatabaseError } from 'pg';
import { createLogger, logOutput } from './logger.ts';

const SECRET = 'geheim';

/** Returns the line written for an error. */
function logged(said: object): { line: string; err: Record<string, unknown> } {
  let line = '';
  const logger = createLogger('info', 'test', { write: (text) => void (line += text) });
  logger.error(said);
  return { line, err: (JSON.parse(line) as { err: Record<string, unknown> }).err };
}

/** Creates the error of ioredis for a wrong password. */
const refused = (): Error =>
  Object.assign(new (ReplyError as ErrorConstructor)('WRONGPASS invalid username-password pair'), {
    command: { name: 'auth', args: [SECRET] },
  });

describe('an error in the log', () => {
  test('has its type, message, stack and code', () => {
    const error = Object.assign(new TypeError('wrong'), { code: 'E_WRONG' });
    const expected = { type: 'TypeError', message: 'wrong', stack: error.stack, code: 'E_WRONG' };
    expect(logged({ err: error }).err).toEqual(expected);
    expect(logged(error).err).toEqual(expected);
  });

  test('has its causes and aggregated errors, each with its code', () => {
    const inner = Object.assign(new Error('inner'), { code: 'ECONNREFUSED' });
    const { err } = logged({ err: new AggregateError([inner], 'outer', { cause: inner }) });
    const shown = expect.objectContaining({ type: 'Error', message: 'inner', code: 'ECONNREFUSED' }) as object;
    expect(err).toMatchObject({ type: 'AggregateError', message: 'outer', cause: shown, errors: [shown] });
  });

  test('does not have the command that Redis refused, which may be AUTH with the password', () => {
    for (const error of [refused(), new Error('outer', { cause: refused() }), new AggregateError([refused()])]) {
      const { line } = logged({ err: error });
      expect(line).toContain('WRONGPASS');
      expect(line).not.toContain(SECRET);
    }
  });

  test('does not have the values that PostgreSQL and TypeORM add', () => {
    const error = Object.assign(new DatabaseError('duplicate key', 13, 'error'), {
      code: '23505',
      detail: `Key (user_id)=(${SECRET}) already exists.`,
      where: SECRET,
      parameters: [SECRET],
    });
    const { line, err } = logged({ err: error });
    expect(err).toMatchObject({ type: 'DatabaseError', code: '23505' });
    expect(line).not.toContain(SECRET);
  });

  test('is written also if its causes are circular', () => {
    const error: Error = new Error('round');
    error.cause = error;
    expect(logged({ err: error }).err).toMatchObject({ message: 'round', cause: { message: 'round' } });
  });

  test('is cut if it is long', () => {
    const { err } = logged({ err: new Error(`${'x'.repeat(16_384)}yz`) });
    expect(err).toMatchObject({ message: `${'x'.repeat(16_384)}… (2 characters more)` });
    expect((err as { stack: string }).stack.length).toBeLessThan(17_000);
  });

  test.each([undefined, null, 'thrown text'])('may be a value that is no Error: %p', (thrown) => {
    expect(logged({ err: thrown }).err).toEqual(thrown);
  });

  test('has only the named properties also if it is a plain object', () => {
    expect(logged({ err: { name: 'Odd', message: 'm', password: SECRET } }).err).toEqual({ type: 'Odd', message: 'm' });
  });
});

describe('a field that holds a secret', () => {
  const line = (said: object): string => {
    let written = '';
    createLogger('info', 'test', { write: (text) => void (written += text) }).info(said, 'said');
    return written;
  };

  test.each([
    { authorization: SECRET },
    { cookie: SECRET },
    { token: SECRET },
    { pageKey: SECRET, headers: { 'Spool-Page-Key': SECRET } },
    { req: { headers: { Authorization: SECRET, 'set-cookie': [SECRET], 'X-Api-Key': SECRET } } },
    { a: [{ b: { accessToken: SECRET, clientSecret: SECRET } }] },
    { a: { b: { c: { d: { password: { deeper: SECRET } } } } } },
    { a: { b: { c: { d: { e: { f: { any: SECRET } } } } } } },
  ])('is hidden at any depth: %j', (said) => {
    expect(line(said)).toContain('[redacted]');
    expect(line(said)).not.toContain(SECRET);
  });

  test('is hidden without hiding other fields', () => {
    const said = { tokenId: 'id', tokens: 3, threadId: 't', at: new Date(0), list: [1, 'two'], none: null };
    expect(JSON.parse(line(said))).toMatchObject({ ...said, at: '1970-01-01T00:00:00.000Z' });
  });
});

describe('the form of the log', () => {
  test('is JSON unless standard output is a terminal or `pretty` is set', () => {
    expect(logOutput('json')).toBeUndefined();
    expect(logOutput('auto') === undefined).toBe(!process.stdout.isTTY);
    expect(logOutput('pretty')).toBeDefined();
  });
});

describe('a line within a trace', () => {
  test('has the trace id, and a line outside of it has none', () => {
    const traceId = '0af7651916cd43dd8448eb211c80319c';
    const span = trace.wrapSpanContext({ traceId, spanId: 'b7ad6b7169203331', traceFlags: TraceFlags.SAMPLED });
    const manager = new AsyncLocalStorageContextManager().enable();
    context.setGlobalContextManager(manager);
    const lines: string[] = [];
    const logger = createLogger('info', 'test', { write: (text) => void lines.push(text) });
    context.with(trace.setSpan(context.active(), span), () => logger.info('within'));
    logger.info('outside');
    context.disable();
    expect(lines.map((text) => (JSON.parse(text) as { traceId?: string }).traceId)).toEqual([traceId, undefined]);
  });
});
