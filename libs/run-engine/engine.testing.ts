import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ulid } from 'ulid';
import {
  AgentCatalogue,
  agentManifestSchema,
  createAgent,
  echoHarness,
  harnessesByName,
  publishAgentVersion,
  runLimits,
  type AgentManifestInput,
  type Harness,
} from '#agents';
import { toLogEntry, type AgentKind, type Command, type LiveRun, type LogEntry, type StoredEvent } from '#domain';
import { CommandHandler, ThreadStore, type Commit, type CommandResult, type RunJob } from '#event-store';
import { BlobKeeper, DiskBlobStore, FileStore, type BlobStore, type FileRefusal, type PreparedFile } from '#files';
import { ByteBudget, createLogger, openDatabase, openPolicyVersions, PolicyWatch, type Logger } from '#platform';
import { LimitedRuns, QueueControls } from '#run-queue';
import { TaskPool } from '#task-pool';
import { createTestDatabase } from '#testing';
import { LeaseKeeper } from './lease-keeper.ts';
import { LeaseThread } from './lease-thread.ts';
import { Reaper, type ReaperOptions } from './reaper.ts';
import { RunEngine } from './run-engine.ts';
import type { RunMemory } from './run-room.ts';
import type { FolderLimits } from './thread-folder.ts';

/** For specs: a separate database, and workers that the spec gives jobs. Everything is real. */
export type World = Awaited<ReturnType<typeof makeWorld>>;

export interface WorkerOptions {
  leaseMs?: number;
  harnesses?: Harness[];
  isPaused?: () => boolean;
  /** Replaces the cap of the world. */
  slotsPerOrganization?: () => Promise<number | null>;
  /** A separate URL of the database, such as that of a proxy. */
  url?: string;
  logger?: Logger;
  /** The memory of Runs; default: unlimited. */
  memory?: RunMemory;
  /** Returns milliseconds since 1970 for events. Default: the clock of the process. */
  now?: () => number;
}

const LEASE_MS = 10_000;
const FOLDER_LIMITS: FolderLimits = { maxFiles: 1_000, maxBytes: 1024 ** 3, maxFileBytes: 1024 * 1024 };

interface WorldOptions {
  leaseMs?: number;
  folderLimits?: FolderLimits;
  /** The share of all slots that one organization may hold. */
  slotsPercent?: number;
  /** Replaces the folder of the world. */
  blobStore?: BlobStore;
}

export async function makeWorld({ leaseMs = LEASE_MS, folderLimits = FOLDER_LIMITS, ...others }: WorldOptions = {}) {
  const testDatabase = await createTestDatabase();
  const folder = await mkdtemp(join(tmpdir(), 'spool-run-engine-'));
  const closing: (() => Promise<void>)[] = [];
  const open = async (url: string) => {
    const database = await openDatabase({ url, applicationName: 'run-engine spec', maxConnections: 6 });
    closing.push(() => database.close());
    return database;
  };
  const { pool } = await open(testDatabase.url);
  const { pool: ownerPool } = await open(testDatabase.ownerUrl);
  const store = new ThreadStore(pool);
  /** The jobs of all Runs that became ready, newest last. */
  const jobs: RunJob[] = [];
  const commits: string[] = [];
  const silent = createLogger('silent', 'run-engine spec');
  const controls = new QueueControls(pool, 'specs', others.slotsPercent);
  const limitedRuns = new LimitedRuns({
    pool,
    controls,
    enqueueSoon: (job) => void jobs.push(job),
    logger: silent,
  });
  const onCommit = (commit: Commit): void => {
    jobs.push(...commit.jobs);
    limitedRuns.onCommit(commit);
    commits.push(commit.events.map(({ type }) => type).join(' '));
  };
  const handler = new CommandHandler({ store, leaseMs, onCommit });
  const organizationId = ulid();
  await pool.query('insert into organizations (id, name) values ($1, $2)', [organizationId, 'Specs']);
  // Not started, because engines read only versions, which never change.
  const watch = new PolicyWatch({ versions: openPolicyVersions(testDatabase.url) });
  const files = new FileStore(pool);
  const blobs = new BlobKeeper({ pool, store: others.blobStore ?? new DiskBlobStore(folder), logger: silent });

  /** Makes a worker: an engine with its own leases, and its own pool if it has a URL. */
  async function makeWorker(options: WorkerOptions = {}) {
    const { harnesses: others = [], isPaused = () => false, url, logger = silent } = options;
    const { slotsPerOrganization = () => controls.slotsPerOrganization() } = options;
    const own = url === undefined ? { pool } : await open(url);
    const harnesses = harnessesByName([echoHarness({ crash: () => undefined }), ...others]);
    const holder = ulid();
    const lease = options.leaseMs ?? leaseMs;
    const database = { url: url ?? testDatabase.url, applicationName: 'run-engine spec leases' };
    const renewer = new LeaseThread({ database, holder, leaseMs: lease, logger });
    const leases = new LeaseKeeper({ renewer, leaseMs: lease, logger });
    const tasks = new TaskPool({ size: 2, memoryBytes: 256 * 1024 * 1024, logger });
    const ownStore = new ThreadStore(own.pool);
    // Like the live bus: a process receives its own commits immediately.
    const onOwnCommit = (commit: Commit): void => {
      onCommit(commit);
      engine.wake(commit.after.threadId, commit.after.version);
    };
    const engine = new RunEngine({
      store: ownStore,
      handler: new CommandHandler({
        ...{ store: ownStore, leaseMs: lease, onCommit: onOwnCommit },
        ...(options.now && { now: options.now }),
      }),
      pool: own.pool,
      catalogue: new AgentCatalogue({ pool: own.pool, watch, harnesses }),
      harnesses,
      blobs,
      files: new FileStore(own.pool),
      folderLimits,
      leases,
      tasks,
      memory: options.memory ?? { budget: new ByteBudget({ process: Infinity, share: Infinity }) },
      enqueueSoon: (job) => void jobs.push(job),
      onLimited: (id) => limitedRuns.onLimited(id),
      slotsPerOrganization,
      isPaused: async () => isPaused(),
      holder,
      leaseMs: lease,
      logger,
    });
    closing.push(() => leases.stop());
    closing.push(() => tasks.close());
    return { engine, leases, renewer, holder, store: ownStore };
  }

  async function makeAgent(manifest: Partial<AgentManifestInput> = {}, organization = organizationId) {
    const input = { name: 'Echo', harness: { name: 'echo' }, ...manifest };
    const agentId = await createAgent(pool, { organizationId: organization, manifest: input });
    const agentVersion = (await publishAgentVersion(pool, agentId, input)) ?? 0;
    return { agentId, organizationId: organization, agentVersion, limits: runLimits(agentManifestSchema.parse(input)) };
  }

  /** Creates a Thread of a new agent with a first message. Returns also the job to execute. */
  const say = async (text: string, manifest: Partial<AgentManifestInput> = {}) =>
    sayTo(await makeAgent(manifest), text);

  async function sayTo(agent: Awaited<ReturnType<typeof makeAgent>>, text: string, kind: AgentKind = 'cattle') {
    const { agentId, agentVersion, limits } = agent;
    const threadId = ulid();
    const owner = { personId: null, serviceTokenId: null };
    const create: Command = {
      type: 'create_thread',
      agentId,
      organizationId: agent.organizationId,
      kind,
      userId: 'user-1',
      owner,
    };
    const message = (
      words: string,
      runId: string,
      whenBusy: 'reject' | 'enqueue' | 'interrupt' = 'reject',
    ): Command => ({
      type: 'add_message',
      text: words,
      requestId: null,
      fileIds: [],
      run: { runId, agentVersion, limits },
      whenBusy,
      by: null,
    });
    const runId = ulid();
    await handle(threadId, create, message(text, runId));
    return { threadId, runId, job: { threadId, runId, dispatch: 1 }, message, agentVersion, limits };
  }

  const handle = (threadId: string, ...commands: Command[]): Promise<CommandResult> =>
    handler.handle({ threadId, commands });

  /** Attaches a stored file to the Thread. */
  const attach = async (threadId: string, file: PreparedFile): Promise<CommandResult<FileRefusal>> => {
    const commands: Command[] = [{ type: 'attach_file', fileId: file.id }];
    return handler.handle({ threadId, commands, hook: () => files.inAppend({ added: [file] }) });
  };

  const stream = async (threadId: string) =>
    (await store.readStream(threadId, 0, { maxEvents: 10_000 })) as StoredEvent[];

  return {
    url: testDatabase.url,
    folder,
    pool,
    /** Connects as the owner, which may alter tables and change events. */
    ownerPool,
    store,
    blobs,
    handler,
    jobs,
    commits,
    makeWorker,
    makeReaper: (isPaused = () => false, logger = silent, by: ReaperOptions['handler'] = handler) =>
      new Reaper({ pool, handler: by, isPaused: async () => isPaused(), leaseMs, logger }),
    makeAgent,
    say,
    sayTo,
    handle,
    attach,
    stream,
    types: async (threadId: string) => (await stream(threadId)).map(({ type }) => type),
    log: async (threadId: string) =>
      (await stream(threadId)).map(toLogEntry).filter((entry): entry is LogEntry => entry !== null),
    run: async (threadId: string, runId: string): Promise<LiveRun | undefined> => {
      const state = (await store.load(threadId))?.state;
      return state === undefined || state.lifecycle === 'none' ? undefined : state.runs.find(({ id }) => id === runId);
    },
    summary: async (runId: string) => {
      const { rows } = await pool.query('select * from run_summaries where run_id = $1', [runId]);
      return rows[0] as { status: string; error: unknown; final_output: { text: string; warnings: unknown[] } | null };
    },
    /** Resolves when no process looks for Runs that may leave their limit. */
    limitsAreQuiet: () => limitedRuns.close(),
    /** Ends the lease in the database only. */
    endLease: (runId: string) =>
      pool.query(`update run_work set due_at = clock_timestamp() - interval '1 ms' where run_id = $1`, [runId]),
    close: async () => {
      await limitedRuns.close();
      for (const close of closing.reverse()) await close();
      await rm(folder, { recursive: true });
      await testDatabase.drop();
    },
  };
}
