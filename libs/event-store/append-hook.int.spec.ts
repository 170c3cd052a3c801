import type { PoolClient } from 'pg';
import type { AppendHook } from './append.ts';
import { addMessage, answerUnder, idleThread, makeAppend, openFixture, type Fixture } from './store.testing.ts';

// Real: PostgreSQL.

let on: Fixture;
beforeEach(async () => {
  on = await openFixture();
});
afterEach(() => on.close());

/** Returns a part of a hook that stores the note in a table of another package. */
const note =
  <Reason extends string = never>(text: string, reason: Reason | null = null) =>
  async (client: PoolClient): Promise<Reason | null> => {
    await client.query('insert into unclaimed_blobs values ($1, now())', [text]);
    return reason;
  };

/** Sends a message with the hook. Returns the result, how many events were stored, the stored key and the notes. */
async function send<Reason extends string>(hook: AppendHook<Reason>) {
  const { threadId, version } = await idleThread(on);
  const request = { threadId, commands: [addMessage()], answer: () => answerUnder('key'), hook: () => hook };
  const result = await on.handler.handle<Reason>(request);
  const stored = ((await on.store.load(threadId))?.version ?? 0) - version;
  return { result, stored, key: (await on.store.findKey('token', 'key'))?.threadId === threadId, notes: await notes() };
}

async function notes(): Promise<string[]> {
  const { rows } = await on.admin.query<{ text: string }>('select blob_key as text from unclaimed_blobs order by 1');
  return rows.map(({ text }) => text);
}

describe('the hook of an append', () => {
  test('shares its transaction, before and after it', async () => {
    const sent = await send({ before: note('before'), after: note('after') });
    expect(sent).toMatchObject({ result: { outcome: 'appended' }, stored: 3, key: true, notes: ['after', 'before'] });
  });

  test('commits only the statements of `before` if `before` refuses', async () => {
    expect(await send({ before: note('before', 'full'), after: note('after') })).toEqual({
      ...{ result: { outcome: 'refused', reason: 'full', isFinal: true }, stored: 0, key: false, notes: ['before'] },
    });
  });

  test('rolls everything back, even the stored answer, if `after` refuses', async () => {
    expect(await send({ before: note('before'), after: note('after', 'full') })).toEqual({
      ...{ result: { outcome: 'refused', reason: 'full', isFinal: false }, stored: 0, key: false, notes: [] },
    });
  });

  test('rolls `before` back and does not run `after` if the stream has newer events', async () => {
    const from = await idleThread(on);
    const { threadId } = from;
    const append = await makeAppend({ threadId, from, commands: [addMessage()] });
    const hook = { before: note('before'), after: note('after') };
    expect(await on.store.append({ ...append, before: { ...from, version: from.version + 5 }, hook })).toEqual({
      outcome: 'conflict',
    });
    expect(await notes()).toEqual([]);
  });
});
