import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ulid } from 'ulid';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import { configSchema, isOwnVariable, openDatabase, type Database } from '#platform';
import { createTestDatabase, spawnNode, type MemoryLimit, type SpawnedNode, type TestDatabase } from '#testing';
import type { Caller } from './client.ts';
import { toolServerEnv } from './tool-servers.ts';

/** A system under test: real processes as built, on a database of its own. */
export interface System {
  /** The spec's own connections, as the owner. They may change and delete events. */
  database: Database;
  databaseUrl: string;
  /** Where processes keep jobs and publish wake-ups. */
  env: Record<string, string>;
  personToken: string;
  operatorToken: string;
  /** May call the Agent. */
  serviceToken: { id: string; token: string };
  agentId: string;
  /** Of another release, where its folder is given. */
  startApi(env?: Record<string, string>, release?: string): Promise<ApiProcess>;
  startWorker(env?: Record<string, string>, release?: string): Promise<SpawnedNode>;
  /** Ends every process that still runs, and drops the database. */
  stop(): Promise<void>;
}

export interface ApiProcess {
  process: SpawnedNode;
  caller: Caller;
}

export type App = 'api' | 'worker';

export interface SystemOptions {
  /** `redis://…`; without it jobs and wake-ups go through PostgreSQL. */
  queueUrl?: string;
  env?: Record<string, string>;
  manifest?: Partial<AgentManifestInput>;
  /** Where to live, migrated; without it on a database of its own. */
  testDatabase?: TestDatabase;
  /** Default: those of the environment, for a process together with its children (scripts/smallest-memory.mjs). */
  memoryLimits?: Record<App, MemoryLimit>;
}

/** Whether a night part runs: faults last their full time, and loads are larger. */
export const isLong = process.env['SPOOL_LONG'] === '1';

/** How long a test may take, milliseconds. */
export const upTo = (ms: number): number => (isLong ? 15 * 60_000 : ms);

/** Generous: several processes start at once, on two cores. */
const START_TIMEOUT_MS = 45_000;

export async function startSystem({ queueUrl, env = {}, manifest = {}, ...on }: SystemOptions = {}): Promise<System> {
  const testDatabase = on.testDatabase ?? (await createTestDatabase());
  const database = await openDatabase({ url: testDatabase.ownerUrl, applicationName: 'e2e', maxConnections: 4 });
  const { personToken, operatorToken, serviceToken, agentId } = await seed(database, manifest);
  const processEnv = {
    DATABASE_URL: testDatabase.url,
    QUEUE_URL: queueUrl ?? testDatabase.url,
    QUEUE_NAME: `e2e-${ulid().toLowerCase()}`,
    PORT: '0',
    LOG_LEVEL: 'info',
    // Two systems at once, of four processes and more each, must stay below the 100 connections of PostgreSQL.
    DATABASE_POOL_SIZE: '5',
    // One token stands for many callers; who tests the limits sets them.
    RATE_LIMIT_PER_MINUTE: '1000000000',
    STREAMS_PER_TOKEN: '1000000',
    STREAMS_PER_THREAD: '1000000',
    STREAMS_PER_PROCESS: '1000000',
    MALLOC_MMAP_THRESHOLD_: mallocThreshold(),
    ...toolServerEnv,
    // Manifests may name all variables of a test that are not settings.
    MANIFEST_VARIABLES: variablesOf(env),
    ...env,
  };
  const processes: SpawnedNode[] = [];
  const start = async (app: App, release: string, ready: RegExp, more: Record<string, string>) => {
    const bytes = memoryOfEnvironment(app);
    const memoryLimit = on.memoryLimits?.[app] ?? (bytes === undefined ? undefined : { bytes });
    const options = memoryLimit && { memoryLimit };
    const process = spawnNode(`${release}/dist/apps/${app}/main.js`, [], { ...processEnv, ...more }, options);
    processes.push(process);
    return { process, match: await process.waitForLine(ready, START_TIMEOUT_MS) };
  };
  return {
    database,
    databaseUrl: testDatabase.url,
    env: processEnv,
    personToken,
    operatorToken,
    serviceToken,
    agentId,
    startApi: async (more = {}, release = '.') => {
      const { process, match } = await start('api', release, /"url":"([^"]+)".*"api ready"/, more);
      return { process, caller: { baseUrl: match[1] ?? '', token: personToken, agentId } };
    },
    startWorker: async (more = {}, release = '.') => (await start('worker', release, /worker ready/, more)).process,
    stop: () => stop(processes, database, testDatabase),
  };
}

/** Returns SPOOL_API_MEMORY_MIB or SPOOL_WORKER_MEMORY_MIB in bytes, or undefined if it is not set. */
export function memoryOfEnvironment(app: App): number | undefined {
  const mebibytes = process.env[`SPOOL_${app.toUpperCase()}_MEMORY_MIB`];
  return mebibytes === undefined ? undefined : Number(mebibytes) * 1024 ** 2;
}

/** Bytes that RLIMIT_DATA counts and nobody touches: the stacks of ten threads, 8 MiB each, and what malloc reserves. */
export const UNTOUCHED_MEMORY = 96 * 1024 ** 2;

/** The most memory of all children of a task pool, bytes: the default POOL_PROCESSES × the default POOL_MEMORY_BYTES. */
export const POOL_MEMORY = 2 * 256 * 1024 ** 2;

/** Returns the setting of glibc that the image has. */
function mallocThreshold(): string {
  const dockerfile = readFileSync(join(import.meta.dirname, '../../docker/Dockerfile'), 'utf8');
  return /^ENV MALLOC_MMAP_THRESHOLD_=(\d+)$/m.exec(dockerfile)![1]!;
}

const variablesOf = (env: Record<string, string>): string =>
  Object.keys(env)
    .filter((name) => !isOwnVariable(name, Object.keys(configSchema.shape)))
    .join(',');

async function stop(processes: SpawnedNode[], database: Database, testDatabase: TestDatabase): Promise<void> {
  await Promise.all(processes.map((process) => process.kill('SIGKILL')));
  await database.close();
  await testDatabase.drop();
}

async function seed({ pool }: Database, more: Partial<AgentManifestInput>) {
  const access = new AccessStore(pool);
  const organizationId = await access.createOrganization('Testers');
  const personId = await access.createPerson('Tester');
  await access.addMember(organizationId, personId);
  const manifest: AgentManifestInput = {
    name: 'echo',
    harness: { name: 'echo', pauseMs: 0, allowCrash: true },
    ...more,
  };
  const agentId = await createAgent(pool, { organizationId, ownerPersonId: personId, manifest });
  await publishAgentVersion(pool, agentId, manifest);
  const person = await access.mintToken({ kind: 'person', personId, name: 'e2e' });
  const operator = await access.mintToken({ kind: 'operator', name: 'on call' });
  const serviceToken = await access.mintToken({ kind: 'service', organizationId, agentIds: [agentId], name: 'app' });
  return { personToken: person.token, operatorToken: operator.token, serviceToken, agentId };
}
