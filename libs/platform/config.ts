import { accessSync, constants } from 'node:fs';
import { z } from 'zod';
import { folderList, isOwnVariable, parseList, pathList, variableNames } from './config-lists.ts';
import { isDatabaseUrl } from './database-address.ts';
import { readSecretFiles } from './secret-files.ts';
import { StartError } from './main-process.ts';
import { parseAllowedAddresses } from './private-addresses.ts';
import { parseRedisAddress, REDIS_PROTOCOLS } from './redis-address.ts';

const WHOLE = 'must be a whole number';
const wholeNumber = z.coerce.number({ error: WHOLE }).int(WHOLE);
const atLeast = (min: number) => wholeNumber.min(min, `must be at least ${min}`);
const milliseconds = (fallback: number, min = 1) => atLeast(min).default(fallback);
const MEBIBYTE = 1024 * 1024;
const DAY_MS = 24 * 60 * 60 * 1_000;
const bytes = (fallback: number, min = 1) => atLeast(min).default(fallback);
const count = (fallback: number, max: number) => atLeast(1).max(max, `must be at most ${max}`).default(fallback);
const optionalCount = (max: number) => atLeast(1).max(max, `must be at most ${max}`).optional();
const MAX_REQUESTS = 1_000_000_000;
const MAX_STREAMS = 1_000_000;
const startsWithOne = (text: string, protocols: readonly string[]): boolean =>
  protocols.some((protocol) => text.startsWith(`${protocol}://`));
const address = (...protocols: string[]) =>
  z.string().refine((text) => startsWithOne(text, protocols), {
    message: `must start with ${protocols.map((protocol) => `${protocol}://`).join(' or ')}`,
    abort: true,
  });
const NOT_A_URL = 'is not a URL; special characters in a user name or password must be percent-encoded';
const url = (...protocols: string[]) =>
  address(...protocols).refine((text) => URL.canParse(text), { message: NOT_A_URL, abort: true });

const WRONG_BLOB_URL = 'must be file:///folder or s3://bucket/prefix, with ?endpoint=http(s)://… and region=… at most';

/** No name or password: credentials of S3 come from the environment, as for all AWS programs. */
function isBlobUrl(text: string): boolean {
  const { protocol, host, hostname, username, password, hash, searchParams } = new URL(text);
  if (protocol === 'file:') return host === '';
  const { endpoint, region, ...others } = Object.fromEntries(searchParams);
  return (
    hostname !== '' &&
    host === hostname &&
    username + password + hash === '' &&
    region !== '' &&
    Object.keys(others).length === 0 &&
    (endpoint === undefined || (URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol)))
  );
}

function refuseWrongAddresses(list: string, context: z.RefinementCtx): void {
  try {
    parseAllowedAddresses(list);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as RangeError).message });
  }
}

const POSTGRES = ['postgres', 'postgresql'];

/** The address of a Redis, or of a PostgreSQL where that is allowed too. */
function refuseWrongServer(text: string, context: z.RefinementCtx): void {
  if (!isRedisUrl(text)) return void (isDatabaseUrl(text) || context.addIssue({ code: 'custom', message: NOT_A_URL }));
  try {
    const { cacert, cert, key } = parseRedisAddress(text).tls ?? {};
    for (const file of [cacert, cert, key]) if (file !== undefined) accessSync(file, constants.R_OK);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
}

/**
 * Everything that can be set, with its default; `.env.example` lists the same, kept equal by a test. Names ending in `_MS`
 * are milliseconds.
 */
export const configSchema = z.object({
  /** Port of the API; 0 takes any free one. */
  PORT: wholeNumber.min(0).max(65_535).default(3000),
  /** Address that the API listens on. */
  HOST: z.string().min(1).default('127.0.0.1'),
  /** Port for /metrics and /health without a token, of api, worker and standalone; without it there is none; 0 takes any free one. */
  METRICS_PORT: wholeNumber.min(0).max(65_535).optional(),
  /** Address of that port: whoever reaches it reads all metrics. */
  METRICS_HOST: z.string().min(1).default('127.0.0.1'),
  /** Where the embedded PostgreSQL and blobs on disk live. */
  DATA_DIR: z.string().min(1).default('.data'),
  /** PostgreSQL 15 to 18, over TCP, TLS or a Unix socket. Without it the standalone starts an embedded one. */
  DATABASE_URL: address(...POSTGRES)
    .refine(isDatabaseUrl, NOT_A_URL)
    .optional(),
  /**
   * The storage of BullMQ's jobs: a Redis (production), a Sentinel group or a cluster (docs/operations/redis.md), or
   * `postgres://…`. Default: DATABASE_URL.
   */
  QUEUE_URL: address(...POSTGRES, ...REDIS_PROTOCOLS)
    .superRefine(refuseWrongServer)
    .optional(),
  /** Redis for wake-ups between processes; default: QUEUE_URL if that is Redis, else LISTEN/NOTIFY. */
  REDIS_URL: address(...REDIS_PROTOCOLS)
    .superRefine(refuseWrongServer)
    .optional(),
  /** Name of the queue, and of all its keys: two installations on one Redis need two names. */
  QUEUE_NAME: z
    .string()
    .regex(/^[a-z0-9-]{1,40}$/, 'must be 1 to 40 of a-z, 0-9 and -')
    .default('spool-runs'),
  /** What `links.thread` starts with, without `/api/v1`; default: the request's own host. */
  PUBLIC_BASE_URL: url('http', 'https').optional(),
  /** Where file bytes are kept: `file://…`, or `s3://…` for several pods; default: a folder in DATA_DIR. */
  BLOB_URL: url('file', 's3').refine(isBlobUrl, WRONG_BLOB_URL).optional(),
  LOG_LEVEL: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  /** `auto`: for people where standard output is a terminal, else JSON, a line each. */
  LOG_FORMAT: z.enum(['auto', 'json', 'pretty']).default('auto'),
  /** Connections of a process's main pool. A process opens at most 10 more (docs/operations/postgresql.md). */
  DATABASE_POOL_SIZE: atLeast(1).default(10),
  /** Runs that one worker process executes at once. */
  WORKER_SLOTS: count(16, 1_000),
  /** Child processes for work that may run away, such as the text of documents. One organization uses at most half of them. */
  POOL_PROCESSES: count(2, 64),
  /** The most memory of one such child, bytes. */
  POOL_MEMORY_BYTES: bytes(256 * MEBIBYTE, 96 * MEBIBYTE),
  /**
   * Bytes of memory that the Runs of one worker process may use for transcripts and for what their tools read, and the
   * percentage of them that one organization may use. Default of the first: half of the heap that V8 may have.
   */
  RUN_MEMORY_BYTES: atLeast(64 * MEBIBYTE).optional(),
  RUN_MEMORY_PERCENT_PER_ORGANIZATION: count(50, 100),
  /** Percentage of the slots of all workers that one organization may hold. An organization's own limit replaces it. */
  SLOTS_PERCENT_PER_ORGANIZATION: count(100, 100),
  /** How long a claim holds without being renewed, by the database's clock. */
  LEASE_MS: milliseconds(10_000, 500),
  /** How long a stopping API goes on serving, not ready any more, before it closes: until no balancer sends to it. */
  SHUTDOWN_DRAIN_MS: milliseconds(0, 0),
  /** How long a stopping worker lets steps end before it hands their Runs back, and an API requests before it cuts them. */
  SHUTDOWN_GRACE_MS: milliseconds(5_000, 0),
  /** Silence on a stream after which a keepalive is sent. */
  STREAM_KEEPALIVE_MS: milliseconds(15_000, 100),
  /** How long a reader of a download may take not one byte before it is cut off. */
  DOWNLOAD_STALL_MS: milliseconds(30_000, 100),
  /** Largest JSON body of a request, bytes. */
  BODY_LIMIT_BYTES: bytes(8 * MEBIBYTE, 1_024),
  /** Bytes of request bodies that one process holds at once, and the percentage of them that one organization may hold. */
  BODY_BUDGET_BYTES: bytes(64 * MEBIBYTE, 1_024),
  BODY_BUDGET_PERCENT_PER_ORGANIZATION: count(50, 100),
  /** How long a JSON body may take to arrive. */
  BODY_TIMEOUT_MS: milliseconds(30_000, 1_000),
  /** Bytes per second at which a body must arrive, JSON or upload, measured over 5 s. */
  BODY_BYTES_PER_SECOND: bytes(10_000),
  /** How long the headers of a request may take to arrive. Node refuses more than the whole request may take (5 min). */
  HEADERS_TIMEOUT_MS: atLeast(1_000).max(300_000, 'must be at most 300000').default(10_000),
  /** Events that one request can send. The contract's own limit is the most. */
  EVENTS_PER_BATCH: count(100, 100),
  /** Characters of a message's text, likewise. */
  MESSAGE_TEXT_LIMIT: count(128_000, 128_000),
  /** Largest file, uploaded or made by an Agent, bytes. */
  FILE_LIMIT_BYTES: bytes(64 * MEBIBYTE),
  /** Largest file given as base64 within JSON, decoded, bytes. */
  INLINE_FILE_LIMIT_BYTES: bytes(5 * MEBIBYTE),
  /** Attachments that one Thread can have. */
  FILES_PER_THREAD: count(100, 10_000),
  /** Files that the folder of one Thread, or of one pet, can have, and bytes in all of them. */
  FOLDER_FILES: count(1_000, 100_000),
  FOLDER_BYTES: bytes(1024 * MEBIBYTE),
  /**
   * Files that one organization can have (drafts, attachments, artifacts and folders), and bytes in all of them, unless an
   * operator has set another quota for it. Unset: no limit.
   */
  ORGANIZATION_FILES: optionalCount(1_000_000_000),
  ORGANIZATION_FILE_BYTES: atLeast(1).optional(),
  /** Drafts that one person or service token can have, not attached to a Thread yet. */
  DRAFTS_PER_TOKEN: count(1_000, 1_000_000),
  /** How long a draft is kept. */
  DRAFT_AGE_MS: milliseconds(DAY_MS),
  /** How long the answer of an idempotency key is kept. */
  IDEMPOTENCY_KEY_AGE_MS: milliseconds(DAY_MS),
  /** How often what is too old is removed: drafts, idempotency keys, bytes that no file has. */
  HOUSEKEEPING_MS: milliseconds(30_000, 100),
  /**
   * Requests per minute of a person's or an operator's token, and of a service token, unless an operator has set another
   * limit for the token. The first setting also limits requests without a valid token, by address.
   */
  RATE_LIMIT_PER_PERSON_TOKEN: count(600, MAX_REQUESTS),
  RATE_LIMIT_PER_SERVICE_TOKEN: count(6_000, MAX_REQUESTS),
  /** Sets each of the two settings above that is not set. */
  RATE_LIMIT_PER_MINUTE: optionalCount(MAX_REQUESTS),
  /** Where requests are counted: by all processes together (Redis if there is one, else PostgreSQL), or by each alone. */
  RATE_LIMIT_STORE: z.enum(['shared', 'process']).default('shared'),
  /** Open event streams of one Thread, per process. */
  STREAMS_PER_THREAD: count(20, MAX_STREAMS),
  /** Open event streams of a person's and of a service token, per process, unless an operator has set another limit. */
  STREAMS_PER_PERSON_TOKEN: count(100, MAX_STREAMS),
  STREAMS_PER_SERVICE_TOKEN: count(10_000, MAX_STREAMS),
  /** Sets each of the two settings above that is not set. */
  STREAMS_PER_TOKEN: optionalCount(MAX_STREAMS),
  /** Open event streams of one process, and the percentage of them that one organization may hold. */
  STREAMS_PER_PROCESS: count(12_000, MAX_STREAMS),
  STREAMS_PERCENT_PER_ORGANIZATION: count(90, 100),
  /** How many proxies stand before the API: so many entries of `X-Forwarded-For` from the right are believed. */
  TRUSTED_PROXIES: wholeNumber.min(0).max(10).default(0),
  /**
   * What agents' manifests may have the service call though it is not on the public internet: host names, addresses and
   * CIDRs separated by commas, each with `:port` or without; `*` is everything.
   */
  ALLOWED_PRIVATE_ADDRESSES: z.string().superRefine(refuseWrongAddresses).optional(),
  /** Variables of the processes that manifests may name, separated by commas. Never settings of the service. */
  MANIFEST_VARIABLES: variableNames('ANTHROPIC_API_KEY,OPENAI_API_KEY').superRefine(refuseOwnVariables),
  /** Files, and folders of files, that manifests may name: absolute paths separated by commas. */
  MANIFEST_FILES: pathList,
  /** Programs that manifests may have the workers start as tool servers: absolute paths separated by commas. */
  TOOL_SERVER_COMMANDS: pathList,
  /** Folders that these programs see besides the system's: absolute paths separated by commas, with `:rw` to write. */
  TOOL_SERVER_FOLDERS: folderList,
  /**
   * The protection of the worker's secrets from these programs: `bubblewrap`, a `user` of their own (TOOL_SERVER_USER), or
   * `none`, which lets them read the secrets.
   */
  TOOL_SERVER_ISOLATION: z.enum(['bubblewrap', 'user', 'none']).default('bubblewrap'),
  /** The user that they run as, `uid:gid`; for workers that run as root. Default with bubblewrap: nobody, 65534:65534. */
  TOOL_SERVER_USER: z
    .string()
    .regex(/^[1-9]\d{0,9}:[1-9]\d{0,9}$/, 'must be uid:gid, two numbers above 0')
    .optional(),
  /** Whether manifests may give them the worker's network. */
  TOOL_SERVER_NETWORK: z.enum(['on', 'off']).default('off'),
  /** Memory of each tool server, and what each of its processes may allocate, bytes. Node 24 and newer reserve 512 MiB of it at their start. */
  TOOL_SERVER_MEMORY_BYTES: bytes(1024 * MEBIBYTE, 64 * MEBIBYTE),
  /** Whether fields of older descriptions are taken and answered too (docs/api/compatibility.md); else they are refused. */
  COMPATIBILITY_FIELDS: z.enum(['on', 'off']).default('off'),
  /** The collector that spans are sent to, `/v1/traces` at this address, by OTLP over HTTP; without one nothing is traced. */
  OTEL_EXPORTER_OTLP_ENDPOINT: url('http', 'https').optional(),
  /** The same, with its whole path; it has precedence. */
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url('http', 'https').optional(),
  /** Nothing is traced, whatever else is set. In any case, as OpenTelemetry's specification has it. */
  OTEL_SDK_DISABLED: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false']))
    .default('false'),
});

export type Config = z.infer<typeof configSchema>;

/** Refused at the start, because such an entry would have no effect. */
function refuseOwnVariables(list: string, context: z.RefinementCtx): void {
  const settings = Object.keys(configSchema.shape);
  for (const name of parseList(list))
    if (isOwnVariable(name, settings))
      context.addIssue({ code: 'custom', message: `${name} belongs to the service; no manifest may name it` });
}

/** The settings are wrong: the process must not start. `message` is one readable line. */
export class ConfigError extends StartError {
  override name = 'ConfigError';
}

/** Settings that cover several others. Earlier releases had one setting for them. */
const COVERING = {
  RATE_LIMIT_PER_MINUTE: ['RATE_LIMIT_PER_PERSON_TOKEN', 'RATE_LIMIT_PER_SERVICE_TOKEN'],
  STREAMS_PER_TOKEN: ['STREAMS_PER_PERSON_TOKEN', 'STREAMS_PER_SERVICE_TOKEN'],
} as const;

/** Gives the value of each covering setting to the settings below it that are not set. */
function coverUnset(config: Config, set: object): Config {
  const covered = { ...config };
  for (const name of Object.keys(COVERING) as (keyof typeof COVERING)[]) {
    const value = config[name];
    for (const each of COVERING[name]) if (value !== undefined && !(each in set)) covered[each] = value;
  }
  return covered;
}

/**
 * Reads and checks the settings. Empty variables count as unset. DATABASE_URL, QUEUE_URL and REDIS_URL may be in files that
 * variables with `_FILE` at their end name. Throws ConfigError naming every wrong one.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const { set, problems } = readSecretFiles(given);
  if (problems.length > 0) throw new ConfigError(`Wrong configuration: ${problems.join('; ')}`);
  const parsed = configSchema.safeParse(set);
  if (parsed.success) return coverUnset(parsed.data, set);
  const wrong = parsed.error.issues.map(({ path, message }) => {
    const name = path.join('.');
    // Never the value of a URL: it may hold a password.
    const given = /_(URL|ENDPOINT)$/.test(name) ? '' : `, not ${JSON.stringify(set[name])}`;
    return `${name}: ${message}${given}`;
  });
  throw new ConfigError(`Wrong configuration: ${wrong.join('; ')}`);
}

/** Whether what it names is a Redis, and not a PostgreSQL. */
export function isRedisUrl(url: string | undefined): url is string {
  return url !== undefined && startsWithOne(url, REDIS_PROTOCOLS);
}

/** The Redis for what processes tell each other; undefined where PostgreSQL has to do. */
export function redisUrlOf({ REDIS_URL, QUEUE_URL }: Pick<Config, 'REDIS_URL' | 'QUEUE_URL'>): string | undefined {
  return REDIS_URL ?? (isRedisUrl(QUEUE_URL) ? QUEUE_URL : undefined);
}

/** The database that a process without an embedded one must be given. Throws ConfigError. */
export function requireDatabaseUrl({ DATABASE_URL }: Config): string {
  if (DATABASE_URL === undefined) throw new ConfigError('Wrong configuration: DATABASE_URL: must be set');
  return DATABASE_URL;
}
