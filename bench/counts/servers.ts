import { Redis } from 'ioredis';
import pg from 'pg';
import { migrateInstallation } from '#run-queue';
import { cpuOf, cpuOfFamily, parentOf, startPrivatePostgres, startPrivateRedis } from '#testing';
import type { Defer } from '../clean-up.ts';
import type { Traffic } from './count-result.ts';
import { startCountingProxy } from './counting-proxy.ts';

/** The text of a statement, and how often it ran. */
export interface StatementCount {
  text: string;
  calls: number;
}

/** All counts of the servers so far. */
export interface ServerCounts {
  statements: Map<string, StatementCount>;
  redisCommands: number;
  /** How often Redis executed each command, by its name. */
  redisCalls: Map<string, number>;
  postgres: Traffic;
  redis: Traffic;
  postgresCpuMs: number;
  redisCpuMs: number;
}

/** A private PostgreSQL and a private Redis. */
export interface CountedServers {
  redisUrl: string;
  /** Creates a migrated database. Returns its URL with the role of processes, through a proxy that counts bytes. */
  newDatabase(name: string): Promise<string>;
  /** Returns the counts, without those of its own queries. */
  read(database: string): Promise<ServerCounts>;
  /** Returns the transactions so far, committed and rolled back. An idle backend publishes its last ones after 10 s. */
  readTransactions(database: string): Promise<number>;
}

const SETTINGS = {
  shared_preload_libraries: 'pg_stat_statements',
  // Counts a statement inside a function or trigger as part of the sent statement.
  'pg_stat_statements.track': 'top',
};

export async function startCountedServers(defer: Defer): Promise<CountedServers> {
  const postgres = await startPrivatePostgres({ settings: SETTINGS });
  defer(() => postgres.stop());
  const redis = await startPrivateRedis();
  defer(() => redis.stop());
  const proxy = await startCountingProxy(postgres.port, defer);
  // Uses a separate database, which counts its own queries.
  const admin = new pg.Client({ connectionString: postgres.ownerUrl });
  await admin.connect();
  defer(() => admin.end());
  await admin.query('create extension pg_stat_statements');
  const { rows } = await admin.query<{ pid: number }>('select pg_backend_pid() as pid');
  const postmaster = parentOf(rows[0]?.pid ?? NaN);
  const readRedis = await redisReader(redis.url, defer);
  return {
    redisUrl: redis.url,
    newDatabase: async (name) => {
      await admin.query(`create database ${name}`);
      const [owner, url] = [new URL(postgres.ownerUrl), new URL(postgres.url)];
      owner.pathname = url.pathname = name;
      await migrateInstallation({ ownerUrl: owner.href, appUrl: url.href, queueUrl: redis.url });
      url.port = `${proxy.port}`;
      return url.href;
    },
    read: async (database) => {
      const { commands, calls, traffic, cpuMs } = await readRedis();
      return {
        statements: await readStatements(admin, database),
        redisCommands: commands,
        redisCalls: calls,
        postgres: proxy.traffic(),
        redis: traffic,
        postgresCpuMs: cpuOfFamily(postmaster),
        redisCpuMs: cpuMs,
      };
    },
    readTransactions: async (database) => {
      const { rows } = await admin.query<{ count: string }>(
        'select xact_commit + xact_rollback as count from pg_stat_database where datname = $1',
        [database],
      );
      return Number(rows[0]?.count);
    },
  };
}

async function readStatements(admin: pg.Client, database: string): Promise<Map<string, StatementCount>> {
  const { rows } = await admin.query<{ id: string; text: string; calls: string }>(
    `select s.queryid::text as id, min(s.query) as text, sum(s.calls)::text as calls
     from pg_stat_statements s join pg_database d on d.oid = s.dbid
     where d.datname = $1 group by s.queryid`,
    [database],
  );
  return new Map(rows.map(({ id, text, calls }) => [id, { text, calls: Number(calls) }]));
}

interface RedisCounts {
  commands: number;
  calls: Map<string, number>;
  traffic: Traffic;
  cpuMs: number;
}

/** Returns a function that reads Redis's own counts, minus those of this connection. */
async function redisReader(url: string, defer: Defer): Promise<() => Promise<RedisCounts>> {
  const client = new Redis(url, { lazyConnect: true });
  await client.connect();
  defer(async () => client.disconnect());
  const numberIn = (info: string, name: string): number => Number(new RegExp(`${name}:(\\d+)`).exec(info)?.[1]);
  const pid = numberIn(await client.info('server'), 'process_id');
  let asked = 0;
  return async () => {
    const stats = await client.info('commandstats');
    asked++;
    const calls = [...stats.matchAll(/^cmdstat_(\S+?):calls=(\d+)/gm)].map(([, name, count]) => {
      return [name!.toUpperCase(), Number(count)] as const;
    });
    const received = client.stream.bytesRead;
    const info = await client.info('stats');
    // The counts include this request, but not yet its reply and the command.
    const commands = numberIn(info, 'total_commands_processed') - asked++;
    const traffic = {
      sent: numberIn(info, 'total_net_input_bytes') - client.stream.bytesWritten,
      received: numberIn(info, 'total_net_output_bytes') - received,
    };
    return { commands, calls: new Map(calls), traffic, cpuMs: cpuOf(pid) };
  };
}
