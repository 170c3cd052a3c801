import { storeAttachment } from '#files';
import { FILE_TOOLS, type StepContext, type StepEvent, type TranscriptMessage } from '#agents';
import { makeWorld, type World } from './engine.testing.ts';
import { anotherRunThat, bytes, runThat, write, type Said } from './folder.testing.ts';
import { ok, scripted, scriptedHarness } from './scripted-harness.testing.ts';

// Real: an engine, PostgreSQL, bytes on disk. A Run continues after each fault of a file, and its model gets an error.

let world: World;
beforeAll(async () => {
  world = await makeWorld();
});
afterEach(() => world.pool.query('update organizations set max_files = null, max_file_bytes = null'));
afterAll(() => world.close());

async function resultsOf({ threadId }: Said): Promise<[string, string][]> {
  const { rows } = await world.pool.query<{ outcome: string; result: string }>(
    `select data ->> 'outcome' as outcome, data ->> 'result' as result
     from events where thread_id = $1 and type = 'tool.completed' order by version`,
    [threadId],
  );
  return rows.map(({ outcome, result }) => [outcome, result]);
}

const filesOf = async ({ threadId }: Said) => {
  const { rows } = await world.pool.query<{ name: string }>('select name from files where thread_id = $1', [threadId]);
  return rows.map(({ name }) => name).sort();
};
const blobsWithoutFile = async () =>
  (await world.pool.query<{ blob_key: string }>('select blob_key from unclaimed_blobs')).rows;
const allow = (files: number) => world.pool.query('update organizations set max_files = $1', [files]);

const QUOTA =
  'Nothing was stored: the organization has reached its file quota. Delete files or ask for a larger quota.';

describe('an organization’s quota', () => {
  it('when full, fails the call that writes to the folder, and the Run completes', async () => {
    const said = await runThat(world, await world.say('x', scripted), write('a.txt', 'first'));
    await allow(1);
    await anotherRunThat(world, said, write('b.txt', 'second'));
    expect(await resultsOf(said)).toEqual([
      ['ok', 'done'],
      ['error', QUOTA],
    ]);
    expect(await filesOf(said)).toEqual(['a.txt']);
    expect(await blobsWithoutFile()).toEqual([]);
    // Deleting is always allowed, and makes room.
    await allow(0);
    await anotherRunThat(world, said, ({ files }) => files.remove('a.txt'));
    await allow(1);
    await anotherRunThat(world, said, write('b.txt', 'second'));
    expect(await filesOf(said)).toEqual(['b.txt']);
  });

  it('when full, fails the call that makes an artifact, and leaves no artifact', async () => {
    await allow(0);
    const before = await blobsWithoutFile();
    const said = await runThat(world, await world.say('x', scripted), async ({ saveArtifact }) => {
      const { fileId } = await saveArtifact({ name: 'made.txt', mimeType: null, bytes: bytes('made') });
      return ok(`made ${fileId}`);
    });
    expect(await resultsOf(said)).toEqual([['error', QUOTA]]);
    expect(await filesOf(said)).toEqual([]);
    expect(await blobsWithoutFile()).toEqual(before);
    expect((await world.summary(said.runId)).status).toBe('completed');
    const { rows } = await world.pool.query(
      `select from events where thread_id = $1 and type in ('file.changed', 'files.updated')`,
      [said.threadId],
    );
    expect(rows).toEqual([]);
  });
});

it('a Thread with 10,000 artifacts fails the call that makes one more', async () => {
  const said = await runThat(world, await world.say('x', scripted), async () => ok('nothing'));
  await world.pool.query(
    `insert into files (id, thread_id, kind, name, size, sha256, blob_key)
     select 'many-' || n, $1, 'artifact', 'made.txt', 1, '', 'many-' || n from generate_series(1, 10000) as n`,
    [said.threadId],
  );
  await anotherRunThat(world, said, async ({ saveArtifact }) => {
    await saveArtifact({ name: 'made.txt', mimeType: null, bytes: bytes('made') });
    return ok('made');
  });
  expect((await resultsOf(said)).at(-1)).toEqual([
    'error',
    expect.stringContaining('can have at most 10000 files below artifacts/'),
  ]);
  expect(await filesOf(said)).toHaveLength(10_000);
});

describe('bytes that the blob store has lost', () => {
  async function withLostAttachment(): Promise<Said> {
    const said = await world.say('x', scripted);
    const file = await storeAttachment(world.blobs, { name: 'lost.txt', bytes: bytes('lost'), maxBytes: 100 });
    await world.attach(said.threadId, file);
    await world.blobs.discard([file.blob_key]);
    return said;
  }

  it('fail the tool that reads them, are recorded as lost, and cause no retry', async () => {
    const said = await withLostAttachment();
    let told: TranscriptMessage[] = [];
    let steps = 0;
    async function* step({ transcript }: StepContext): AsyncGenerator<StepEvent> {
      told = [...transcript];
      const toolCalls = [{ toolName: 'read_file', toolInput: { path: 'attachments/lost.txt' } }];
      yield { type: 'message', text: '', toolCalls: ++steps === 1 ? toolCalls : [] };
    }
    const { engine } = await world.makeWorker({ harnesses: [scriptedHarness(step, [...FILE_TOOLS])] });
    await engine.executeJob(said.job);
    expect((await world.summary(said.runId)).status).toBe('completed');
    const lost = 'The content of attachments/lost.txt is lost: the file storage no longer has it.';
    expect(told.at(-1)).toMatchObject({ role: 'tool', outcome: 'error', result: lost });
    const { rows } = await world.pool.query('select from files where thread_id = $1 and lost_at is not null', [
      said.threadId,
    ]);
    expect(rows).toHaveLength(1);
  });
});
