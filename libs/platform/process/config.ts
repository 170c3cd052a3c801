import { z } from 'zod';
import { folderList, isOwnVariable, parseList, pathList, signingKeys, variableNames } from './config-lists.ts';
import {
  allowedAddresses,
  atLeast,
  between,
  blobUrl,
  databaseUrl,
  httpUrl,
  MEBIBYTE,
  percentage,
  port,
  queueUrl,
  redisUrl,
} from './config-types.ts';

const DAY_MS = 24 * 60 * 60 * 1_000;
const text = z.string().min(1);
const onOff = z.enum(['on', 'off']).default('off');
const rate = between(1, 1_000_000_000);
const streams = between(1, 1_000_000);

/** Attaches what the documents state about a setting. .env.example shows `example` if there is no default. */
const readBy =
  (...readers: ('api' | 'worker' | 'cli')[]) =>
  <T extends z.ZodType>(description: string, schema: T, example?: string): T =>
    schema.meta({ readers, description, example });
const api = readBy('api');
const worker = readBy('worker');
const services = readBy('api', 'worker');
const apiAndCli = readBy('api', 'cli');
const workerAndCli = readBy('worker', 'cli');
const all = readBy('api', 'worker', 'cli');

const processes = {
  PORT: api('Port of the API. 0 takes any free port.', port.default(3000)),
  HOST: api('Address that the API listens on.', text.default('127.0.0.1')),
  METRICS_PORT: services(
    'Extra port for /metrics and /health without a token. 0 takes any free port. Unset: no port.',
    port.optional(),
    '9464',
  ),
  METRICS_HOST: services(
    'Address that METRICS_PORT listens on. Everyone who reaches it can read all metrics.',
    text.default('127.0.0.1'),
  ),
  PUBLIC_BASE_URL: api(
    'Address of the service for callers and browsers, without /api/v1 (docs/operators.md). ' +
      'Unset: the host of the request.',
    httpUrl.optional(),
    'https://threads.example.com',
  ),
  TRUSTED_PROXIES: api(
    'Number of proxies in front of the API. It trusts this many entries of X-Forwarded-For, from the right.',
    between(0, 10).default(0),
  ),
  LOG_LEVEL: services(
    'Lowest level that is logged.',
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
  ),
  LOG_FORMAT: services(
    'json: one object per line. pretty: for people. auto: pretty on a terminal, otherwise json.',
    z.enum(['auto', 'json', 'pretty']).default('auto'),
  ),
  SHUTDOWN_DRAIN_MS: api(
    'How long an API that was told to stop accepts requests while /health/ready returns 503, ' +
      'so that load balancers notice (docs/operators.md).',
    atLeast(0).default(0),
  ),
  SHUTDOWN_GRACE_MS: services(
    'How long a worker that was told to stop waits for steps before it cuts them, and an API for requests.',
    atLeast(0).default(5_000),
  ),
};

const stores = {
  DATA_DIR: all(
    'Folder of the embedded PostgreSQL and of the files of `npm start`. Also of file bytes if BLOB_URL is unset.',
    text.default('.data'),
  ),
  DATABASE_URL: all(
    'PostgreSQL 15 to 18, with the role of processes (docs/operations/postgresql.md). ' +
      'API and worker processes need it. Without it `npm start` starts an embedded PostgreSQL.',
    databaseUrl.optional(),
    'postgres://spool_app@localhost:5432/spool',
  ),
  DATABASE_POOL_SIZE: services(
    'Connections of the main pool. A process opens at most 10 more (docs/operations/postgresql.md).',
    atLeast(1).default(10),
  ),
  QUEUE_URL: all(
    "Storage of BullMQ's jobs: a Redis for production (docs/operations/redis.md), or a PostgreSQL. " +
      'Unset: DATABASE_URL.',
    queueUrl.optional(),
    'redis://localhost:6379',
  ),
  REDIS_URL: all(
    'Redis for rate limits and for wake-ups between processes (docs/operations/redis.md). ' +
      'Unset: QUEUE_URL if that is a Redis, otherwise PostgreSQL does both.',
    redisUrl.optional(),
    'redis://localhost:6379',
  ),
  QUEUE_NAME: all(
    'Name of the queue and start of its keys: 1 to 40 of a-z, 0-9 and -. ' +
      'Two installations on one Redis need two names.',
    z
      .string()
      .regex(/^[a-z0-9-]{1,40}$/, 'must be 1 to 40 characters: a to z, 0 to 9 and hyphens')
      .default('spool-runs'),
  ),
  BLOB_URL: all(
    'Where file bytes are stored: file:///folder, or s3://bucket/prefix for several machines (docs/s3.md). ' +
      'Unset: a folder in DATA_DIR.',
    blobUrl.optional(),
    'file:///var/lib/spool/blobs',
  ),
};

const runs = {
  WORKER_SLOTS: worker('Runs that one worker executes at the same time.', between(1, 1_000).default(16)),
  RUN_MEMORY_BYTES: worker(
    'Memory that the Runs of one worker may use for transcripts and tool calls (docs/operations/run-memory.md). ' +
      "Unset: half of V8's heap limit.",
    atLeast(64 * MEBIBYTE).optional(),
    '134217728',
  ),
  RUN_MEMORY_PERCENT_PER_ORGANIZATION: worker(
    'Share of this memory that one organization may use. One Run alone always fits.',
    percentage.default(50),
  ),
  SLOTS_PERCENT_PER_ORGANIZATION: all(
    'Share of the slots of all workers that one organization may hold (docs/fairness.md). ' +
      'Set the same value for all processes. `spool org limit` overrides it.',
    percentage.default(100),
  ),
  LEASE_MS: worker('How long a worker holds a Run without renewing its lease.', atLeast(500).default(10_000)),
  POOL_PROCESSES: services(
    'Number of child processes for work whose cost depends on the input, such as reading documents ' +
      '(docs/operations/task-pool.md).',
    between(1, 64).default(2),
  ),
  POOL_MEMORY_BYTES: services(
    'Maximum memory of one child process of the task pool.',
    atLeast(96 * MEBIBYTE).default(256 * MEBIBYTE),
  ),
};

const requests = {
  BODY_LIMIT_BYTES: api('Largest JSON body of a request.', atLeast(1_024).default(8 * MEBIBYTE)),
  BODY_BUDGET_BYTES: api(
    'Request bodies that one process holds at the same time. ' +
      "At most an eighth of V8's heap limit is used. Beyond it requests get 503.",
    atLeast(1_024).default(64 * MEBIBYTE),
  ),
  BODY_BUDGET_PERCENT_PER_ORGANIZATION: api(
    'Share of this budget that one organization may hold. One body of the largest size always fits.',
    percentage.default(50),
  ),
  BODY_TIMEOUT_MS: api(
    'How long a JSON body may take to arrive. BODY_MS_PER_MIB adds to it.',
    atLeast(1_000).default(30_000),
  ),
  BODY_MS_PER_MIB: api(
    'Additional time for each MiB of a JSON body, by its Content-Length.',
    atLeast(0).default(16_000),
  ),
  BODY_BYTES_PER_SECOND: api('Minimum rate of a body, JSON or upload.', atLeast(1).default(10_000)),
  BODY_RATE_WINDOW_MS: api('Time over which this rate is measured.', atLeast(1_000).default(10_000)),
  REQUEST_TIMEOUT_MS: api(
    'How long a whole request may take to arrive. By default, the largest file arrives at 2 Mbit/s.',
    atLeast(1_000).default(300_000),
  ),
  HEADERS_TIMEOUT_MS: api(
    'How long the headers of a request may take to arrive.',
    between(1_000, 300_000).default(10_000),
  ),
  // The maximum of this setting and the next one is the limit of the contract.
  EVENTS_PER_BATCH: api('Events in one request.', between(1, 100).default(100)),
  MESSAGE_TEXT_LIMIT: api('Characters in the text of one message.', between(1, 128_000).default(128_000)),
  IDEMPOTENCY_KEY_AGE_MS: worker('How long an idempotency key is kept.', atLeast(1).default(DAY_MS)),
  BROWSER_TOKEN_KEYS: api(
    'Keys of browser tokens and file links, as id:secret, separated by commas; ' +
      'a secret is at least 32 random bytes in base64. The first signs, all verify. ' +
      'All API processes need the same. Unset: none.',
    signingKeys,
    // Not a valid key, because everyone knows it.
    'k1:<openssl rand -base64 32>',
  ),
  CHAT_PAGE: api(
    'on: serves the page /chat, where operators, and people with a link, chat with Agents. ' +
      'Needs BROWSER_TOKEN_KEYS.',
    onOff,
  ),
  COMPATIBILITY_FIELDS: api(
    'on: accepts and returns the field names of older descriptions too (docs/api/compatibility.md).',
    onOff,
  ),
};

const limits = {
  RATE_LIMIT_PER_PERSON_TOKEN: apiAndCli(
    'Requests per minute of the token of a person or an operator. ' +
      'Also of each address, for requests without a valid token. `spool token limit` overrides it.',
    rate.default(600),
  ),
  RATE_LIMIT_PER_SERVICE_TOKEN: apiAndCli(
    'Requests per minute of a service token. `spool token limit` overrides it.',
    rate.default(6_000),
  ),
  RATE_LIMIT_PER_MINUTE: apiAndCli(
    'The default of RATE_LIMIT_PER_PERSON_TOKEN and RATE_LIMIT_PER_SERVICE_TOKEN, as in release 0.1.0.',
    rate.optional(),
    '600',
  ),
  RATE_LIMIT_PER_BROWSER_USER: api(
    'Requests per minute of one user with browser tokens. They also count for the service token that made them.',
    rate.default(600),
  ),
  RATE_LIMIT_STORE: api(
    'shared: all processes count requests together, in Redis if there is one, otherwise in PostgreSQL. ' +
      'process: each one counts alone, as does `npm start` on its embedded PostgreSQL.',
    z.enum(['shared', 'process']).default('shared'),
  ),
  STREAMS_PER_THREAD: api('Open event streams of one Thread, per process.', streams.default(20)),
  STREAMS_PER_PERSON_TOKEN: apiAndCli(
    'Open event streams of the token of a person, per process. `spool token limit` overrides it.',
    streams.default(100),
  ),
  STREAMS_PER_SERVICE_TOKEN: apiAndCli(
    'Open event streams of a service token, per process. `spool token limit` overrides it.',
    streams.default(10_000),
  ),
  STREAMS_PER_BROWSER_USER: api(
    'Open event streams of one user with browser tokens, per process. They also count for the service token.',
    streams.default(20),
  ),
  STREAMS_PER_TOKEN: apiAndCli(
    'The default of STREAMS_PER_PERSON_TOKEN and STREAMS_PER_SERVICE_TOKEN, as in release 0.1.0.',
    streams.optional(),
    '20',
  ),
  STREAMS_PER_PROCESS: api(
    'Open event streams of one process. Each takes a file descriptor and about 13 KB of memory.',
    streams.default(12_000),
  ),
  STREAMS_PERCENT_PER_ORGANIZATION: api(
    'Share of STREAMS_PER_PROCESS that one organization may hold.',
    percentage.default(90),
  ),
  STREAM_KEEPALIVE_MS: api('Silence on a stream after which a keepalive is sent.', atLeast(100).default(15_000)),
};

const files = {
  FILE_LIMIT_BYTES: services('Largest file that is uploaded, or made by an Agent.', atLeast(1).default(64 * MEBIBYTE)),
  INLINE_FILE_LIMIT_BYTES: api(
    'Largest file that is sent as base64 in JSON, counted after decoding.',
    atLeast(1).default(5 * MEBIBYTE),
  ),
  FILES_PER_THREAD: api('Attachments of one Thread.', between(1, 10_000).default(100)),
  FOLDER_FILES: worker(
    'Files in the folder of one Thread, or of one pet Agent. Attachments are not in it.',
    between(1, 100_000).default(1_000),
  ),
  FOLDER_BYTES: worker('Total size of the files in such a folder.', atLeast(1).default(1024 * MEBIBYTE)),
  ORGANIZATION_FILES: all(
    'Files of one organization: drafts, attachments, artifacts and folders (docs/operations/files.md). ' +
      'Unset: no limit. `spool org quota` overrides it.',
    between(1, 1_000_000_000).optional(),
    '100000',
  ),
  ORGANIZATION_FILE_BYTES: all(
    'Total size of these files. Unset: no limit. `spool org quota` overrides it.',
    atLeast(1).optional(),
    '107374182400',
  ),
  DRAFTS_PER_TOKEN: api(
    'Drafts of one person or service token: uploaded files that are not attached to a Thread yet.',
    between(1, 1_000_000).default(1_000),
  ),
  DRAFTS_PER_BROWSER_USER: api(
    'Drafts of one user with browser tokens. They do not count for the service token.',
    between(1, 1_000_000).default(100),
  ),
  DRAFT_AGE_MS: services('How long a draft is kept.', atLeast(1).default(DAY_MS)),
  DOWNLOAD_STALL_MS: api('How long a download may stall before it is aborted.', atLeast(100).default(30_000)),
  HOUSEKEEPING_MS: worker(
    'Interval of housekeeping. It removes old drafts and idempotency keys, and bytes without a file.',
    atLeast(100).default(30_000),
  ),
};

const agents = {
  ALLOWED_PRIVATE_ADDRESSES: workerAndCli(
    'Private addresses of model providers and tool servers that manifests may name: host names, addresses or ' +
      'CIDRs, separated by commas. A port may follow (:port; IPv6: [address]:port). `*` allows all.',
    allowedAddresses.optional(),
    'localhost:11434,10.1.0.0/16',
  ),
  MANIFEST_VARIABLES: all(
    'Environment variables that manifests may name, separated by commas; *_X stands for all that end in _X ' +
      '(docs/manifests.md). The API and workers need the same value.',
    variableNames('*_API_KEY').superRefine(refuseOwnVariables),
  ),
  MANIFEST_FILES: all(
    'Files, and folders of files, that manifests may name: absolute paths, separated by commas. Unset: none. ' +
      'The API and workers need the same value.',
    pathList,
    '/run/secrets/manifests',
  ),
  TOOL_SERVER_COMMANDS: all(
    'Programs that manifests may start as tool servers (docs/tools.md): absolute paths, separated by commas. ' +
      'Unset: none, except in `npm start`. The API and workers need the same value.',
    pathList,
    '/usr/bin/npx',
  ),
  TOOL_SERVER_FOLDERS: workerAndCli(
    'Folders that these programs see besides those of the system: absolute paths, separated by commas. ' +
      ':rw after a path allows writing.',
    folderList,
    '/srv/handbook,/srv/notes:rw',
  ),
  TOOL_SERVER_ISOLATION: workerAndCli(
    "How these programs are kept from the worker's secrets: by bubblewrap, or by the user TOOL_SERVER_USER. " +
      'With none they can read all secrets.',
    z.enum(['bubblewrap', 'user', 'none']).default('bubblewrap'),
  ),
  TOOL_SERVER_USER: workerAndCli(
    'User of these programs as uid:gid, if workers run as root. Unset, with bubblewrap: 65534:65534.',
    z
      .string()
      .regex(/^[1-9]\d{0,9}:[1-9]\d{0,9}$/, 'must be uid:gid, two numbers above 0')
      .optional(),
    '65534:65534',
  ),
  TOOL_SERVER_NETWORK: all("on: manifests may give these programs the worker's network, including localhost.", onOff),
  TOOL_SERVER_MEMORY_BYTES: workerAndCli(
    'Memory of each tool server, and the most that each of its processes may allocate. ' +
      'Node 24 and newer reserve 512 MiB at start.',
    atLeast(64 * MEBIBYTE).default(1024 * MEBIBYTE),
  ),
};

const tracing = {
  OTEL_EXPORTER_OTLP_ENDPOINT: services(
    'OpenTelemetry collector (docs/operations/tracing.md). Spans go to /v1/traces below this address. ' +
      'Unset: nothing is traced.',
    httpUrl.optional(),
    'http://localhost:4318',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: services(
    'The same with its whole path. It has precedence.',
    httpUrl.optional(),
    'http://localhost:4318/v1/traces',
  ),
  OTEL_SDK_DISABLED: services(
    'true: nothing is traced, even if a collector is set. Upper case is accepted too.',
    z
      .string()
      .toLowerCase()
      .pipe(z.enum(['true', 'false']))
      .default('false'),
  ),
};

/** The settings by topic. `npm run settings` writes .env.example and docs/operations/settings.md from them. */
export const SETTING_TOPICS = {
  Processes: processes,
  'Databases and file storage': stores,
  Runs: runs,
  Requests: requests,
  'Rate limits and streams': limits,
  Files: files,
  'Manifests and tool servers': agents,
  Traces: tracing,
};

/** All settings, with their defaults. Names that end in `_MS` are milliseconds. */
export const configSchema = z.object({
  ...processes,
  ...stores,
  ...runs,
  ...requests,
  ...limits,
  ...files,
  ...agents,
  ...tracing,
});

export type Config = z.infer<typeof configSchema>;

/** Rejects such an entry at start-up, because it would have no effect. */
function refuseOwnVariables(list: string, context: z.RefinementCtx): void {
  const settings = Object.keys(configSchema.shape);
  for (const name of parseList(list))
    if (isOwnVariable(name, settings))
      context.addIssue({ code: 'custom', message: `${name} belongs to the service; no manifest may name it` });
}
