import { ulid } from 'ulid';
import type { Agent, AgentCatalogue } from '#agents';
import type { CreateThread } from '#domain';
import { FileStore, type BlobKeeper } from '#files';
import { apply, openFixture, runningThread, type Fixture } from '../event-store/store.testing.ts';
import { ThreadReader } from './thread-reader.ts';
import { Threads, type NewThread } from './threads.ts';

// Real: PostgreSQL. What happens between a look-up and its append is a part of the reader.

let on: Fixture;
beforeAll(async () => {
  on = await openFixture();
});
afterAll(() => on.close());

const agent = { id: ulid(), organizationId: ulid(), kind: 'cattle', deleted: false } as Agent;
const owner = { personId: ulid(), serviceTokenId: null, userId: null };
const sender = { id: owner.personId, owner };

/** Returns the use cases. They get no Agents and no blobs, because no test here plans a Run or deletes a file. */
const open = (reader: ThreadReader, files = new FileStore(on.pool)): Threads =>
  new Threads({
    ...{ reader, handler: on.handler, files, settings: { DRAFT_AGE_MS: 1_000, FILES_PER_THREAD: 2 } },
    ...{ agents: {} as AgentCatalogue, blobs: {} as BlobKeeper },
  });

function newThread(reference: string, fileIds: string[] = []): NewThread {
  const externalRef = { tokenId: 'TOKEN', value: reference };
  return { threadId: ulid(), agent, userId: 'u', owner, externalRef, fileIds, text: undefined };
}

/** Deletes the Thread that has the reference before each look-up, and lets another one take it. */
class Racing extends ThreadReader {
  lookUps = 0;

  constructor(
    private readonly rivals: (NewThread | null)[],
    private holder: string,
  ) {
    super(on.pool);
  }

  override async findReferenced(wanted: CreateThread): Promise<string | null> {
    this.lookUps += 1;
    await on.handler.deleteThread(this.holder);
    const found = await super.findReferenced(wanted);
    const rival = this.rivals.shift();
    if (rival) this.holder = (await open(this).create(rival, sender)).thread.threadId;
    return found;
  }
}

async function createRacing(reference: string, rivals: (NewThread | null)[]) {
  const first = newThread(reference);
  await open(new ThreadReader(on.pool)).create(first, sender);
  const reader = new Racing(rivals, first.threadId);
  const created = open(reader).create(newThread(reference), sender);
  return { created, reader };
}

describe('create', () => {
  test('takes a reference whose Thread was deleted between the refusal and the look-up', async () => {
    const { created, reader } = await createRacing('order 1', [null]);
    expect(await created).toMatchObject({ outcome: 'appended' });
    expect(reader.lookUps).toBe(1);
  });

  test('gives up when other Threads take the reference again and again', async () => {
    const rivals = [newThread('order 2'), newThread('order 2'), newThread('order 2')];
    const { created, reader } = await createRacing('order 2', rivals);
    await expect(created).rejects.toMatchObject({ refusal: { reason: 'thread_contended' } });
    expect(reader.lookUps).toBe(3);
  });

  test.each([
    ['draft_repeated', ['F', 'F', 'G']],
    ['too_many_attachments', ['F', 'G', 'H']],
  ])('refuses files with %s before it reads them', async (reason, fileIds) => {
    const created = open(new ThreadReader(on.pool), {} as FileStore).create(newThread('order 3', fileIds), sender);
    await expect(created).rejects.toMatchObject({ refusal: { reason } });
  });
});

test('send reports a Run that ended between its look-up and the append', async () => {
  const { thread, fence } = await runningThread(on);
  const { threadId } = thread;
  class Ending extends ThreadReader {
    override async findRuns(...args: Parameters<ThreadReader['findRuns']>) {
      const found = await super.findRuns(...args);
      if (found.get(fence.runId)?.status === 'running')
        await apply(on.handler, { threadId, commands: [{ type: 'complete_run', ...fence, finalOutput: null }] });
      return found;
    }
  }
  const events = [{ type: 'interrupt', runId: fence.runId } as const];
  const sent = await open(new Ending(on.pool)).send({ threadId, agent, events }, sender);
  expect([...sent.endedRuns.values()]).toMatchObject([{ run_id: fence.runId, status: 'completed' }]);
  expect(sent.outcomes).toMatchObject([{ runId: fence.runId, hadEnded: true }]);
});
