import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { agentManifestSchema } from '#agents';
import { LIMITS } from '#contract';
import { MAX_QUEUED_RUNS } from '#domain';
import { configSchema } from '#platform';

const DOCS = join(import.meta.dirname, '../docs/api');
const read = (page: string): string => readFileSync(join(DOCS, page), 'utf8');
const pages = readdirSync(DOCS).filter((file) => file.endsWith('.md'));
const rows = read('limits.md')
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, limit = '', value = '', , setting = '']) => ({ limit, value, setting }));

const SECOND_MS = 1_000;
const number = (value: number): string => value.toLocaleString('en-US');
const mebibytes = (value: number): string => `${value / 1024 ** 2} MiB`;
const hours = (ms: number): string => `${ms / (3_600 * SECOND_MS)} h`;
/** The setting that a row begins with; undefined for a limit without one. */
const settingOf = ({ setting }: { setting: string }): string | undefined => /^`([A-Z_]+)`/.exec(setting)?.[1];

const config = configSchema.parse({});
const expectedSettings = {
  RATE_LIMIT_PER_PERSON_TOKEN: `${number(config.RATE_LIMIT_PER_PERSON_TOKEN)} a minute`,
  RATE_LIMIT_PER_SERVICE_TOKEN: `${number(config.RATE_LIMIT_PER_SERVICE_TOKEN)} a minute`,
  STREAMS_PER_THREAD: number(config.STREAMS_PER_THREAD),
  STREAMS_PER_PERSON_TOKEN: number(config.STREAMS_PER_PERSON_TOKEN),
  STREAMS_PER_SERVICE_TOKEN: number(config.STREAMS_PER_SERVICE_TOKEN),
  STREAMS_PERCENT_PER_ORGANIZATION: `${config.STREAMS_PERCENT_PER_ORGANIZATION} % of its process`,
  STREAMS_PER_PROCESS: number(config.STREAMS_PER_PROCESS),
  BODY_LIMIT_BYTES: mebibytes(config.BODY_LIMIT_BYTES),
  BODY_BUDGET_BYTES: mebibytes(config.BODY_BUDGET_BYTES),
  BODY_BUDGET_PERCENT_PER_ORGANIZATION: `${config.BODY_BUDGET_PERCENT_PER_ORGANIZATION} % of its process`,
  HEADERS_TIMEOUT_MS: `${config.HEADERS_TIMEOUT_MS / SECOND_MS} s`,
  BODY_TIMEOUT_MS: `${config.BODY_TIMEOUT_MS / SECOND_MS} s`,
  BODY_BYTES_PER_SECOND: `${number(config.BODY_BYTES_PER_SECOND)} bytes/s`,
  EVENTS_PER_BATCH: `1 to ${number(config.EVENTS_PER_BATCH)}`,
  MESSAGE_TEXT_LIMIT: `1 to ${number(config.MESSAGE_TEXT_LIMIT)} characters`,
  IDEMPOTENCY_KEY_AGE_MS: hours(config.IDEMPOTENCY_KEY_AGE_MS),
  FILE_LIMIT_BYTES: mebibytes(config.FILE_LIMIT_BYTES),
  INLINE_FILE_LIMIT_BYTES: mebibytes(config.INLINE_FILE_LIMIT_BYTES),
  FILES_PER_THREAD: number(config.FILES_PER_THREAD),
  DRAFTS_PER_TOKEN: number(config.DRAFTS_PER_TOKEN),
  DRAFT_AGE_MS: hours(config.DRAFT_AGE_MS),
  ORGANIZATION_FILES: config.ORGANIZATION_FILES === undefined ? 'none' : number(config.ORGANIZATION_FILES),
  ORGANIZATION_FILE_BYTES:
    config.ORGANIZATION_FILE_BYTES === undefined ? 'none' : mebibytes(config.ORGANIZATION_FILE_BYTES),
};

/** The row of each limit of the contract; null for one that callers never meet. */
const contractRows: Record<keyof typeof LIMITS, [limit: string, value: string] | null> = {
  userId: ['`userId`', `1 to ${number(LIMITS.userId)} characters`],
  externalRef: ['`externalRef`, `client_external_ref`', `1 to ${number(LIMITS.externalRef)} characters`],
  title: ['`title` that is set', `1 to ${number(LIMITS.title)} characters`],
  initialText: ['`input.content` text of a part', `1 to ${number(LIMITS.initialText)} characters`],
  messageText: ['`user_message.text`', `1 to ${number(LIMITS.messageText)} characters`],
  requestId: ['`requestId`', `${number(LIMITS.requestId)} characters`],
  initialParts: ['`input.content`', `1 to ${number(LIMITS.initialParts)} parts`],
  eventsABatch: ['Events in one request', `1 to ${number(LIMITS.eventsABatch)}`],
  filesAThread: ['`resources` of a message', `${number(LIMITS.filesAThread)} files`],
  idempotencyKey: ['`Idempotency-Key`', `1 to ${number(LIMITS.idempotencyKey)} characters`],
  logEntries: [
    '`limit` of the log',
    `1 to ${number(LIMITS.logEntries)}, default 100; of the stream 0 to ${number(LIMITS.logEntries)}`,
  ],
  runsAPage: ['`limit` of Runs', `1 to ${LIMITS.runsAPage}, default ${LIMITS.runsAPage}`],
  threadsAPage: ['`limit` of Threads', `1 to ${LIMITS.threadsAPage}, default ${LIMITS.threadsAPage}`],
  // Callers only send cursors that Spool returned.
  cursor: null,
  fileName: ['`name` of an inline file', `1 to ${number(LIMITS.fileName)} characters`],
  contentType: ['`contentType` of an inline file', `1 to ${number(LIMITS.contentType)} characters`],
};
const expectedContract = Object.fromEntries(Object.values(contractRows).filter((row) => row !== null));

const runLimits = agentManifestSchema.parse({ name: 'any', harness: { name: 'echo' } }).limits;
const expectedRun = {
  'Waiting for a free worker': `${runLimits.queueMs / (60 * SECOND_MS)} min`,
  'Working, all attempts together': hours(runLimits.workMs),
  'Waiting for a person': `${runLimits.waitMs / (24 * 3_600 * SECOND_MS)} days`,
  'Losses and retryable failures in a row': String(runLimits.maxLosses),
  'Model steps': String(runLimits.maxSteps),
};

const expectedQueue = { 'Runs that wait behind the current one (`whenBusy: enqueue`)': String(MAX_QUEUED_RUNS) };

/** Returns the rows of the page that have these limits, as limit and value. */
const rowsLike = (expected: object): Record<string, string> =>
  Object.fromEntries(rows.filter(({ limit }) => limit in expected).map(({ limit, value }) => [limit, value]));

it('docs/api/limits.md states the default of each setting that limits callers', () => {
  const stated = rows.flatMap((row) => {
    const name = settingOf(row);
    return name === undefined ? [] : [[name, row.value]];
  });
  expect(Object.fromEntries(stated)).toEqual(expectedSettings);
  // The table needs a row for each new setting whose name reads like a limit.
  const limits = Object.keys(configSchema.shape).filter((name) => /LIMIT|_PER_|_AGE_/.test(name));
  expect(limits.filter((name) => !(name in expectedSettings))).toEqual([
    // Runs beyond these wait; no request is refused.
    ...['RUN_MEMORY_PERCENT_PER_ORGANIZATION', 'SLOTS_PERCENT_PER_ORGANIZATION'],
    ...['RATE_LIMIT_PER_MINUTE', 'RATE_LIMIT_STORE', 'STREAMS_PER_TOKEN'],
  ]);
});

it('docs/api/limits.md states each limit of the contract', () => {
  expect(Object.keys(contractRows)).toEqual(Object.keys(LIMITS));
  expect(rowsLike(expectedContract)).toEqual(expectedContract);
});

it('docs/api/limits.md states the default limits of a Run', () => {
  expect(Object.keys(expectedRun)).toHaveLength(Object.keys(runLimits).length);
  expect(rowsLike(expectedRun)).toEqual(expectedRun);
});

it('docs/api/limits.md states how many Runs may wait behind the current one', () => {
  expect(rowsLike(expectedQueue)).toEqual(expectedQueue);
});

it('docs/api/limits.md has no limit that no test compares', () => {
  const limits = rows.filter(({ limit }) => limit !== 'limit' && !limit.startsWith('---'));
  expect(limits.length).toBeGreaterThan(20);
  const comparedElsewhere = {
    'Time for a whole request to arrive': 'apps/api/http-adapter.unit.spec.ts',
    'Time for which a body over 256 KiB waits for its turn': 'apps/api/bodies/body-turns.unit.spec.ts',
    'Values of a JSON body': 'apps/api/bodies/json-shape.unit.spec.ts',
    'Fields of one object in a JSON body': 'apps/api/bodies/json-shape.unit.spec.ts',
    'Entries in one answer of the log, final outputs in one page of Runs': 'apps/api/events.int.spec.ts',
  };
  const compared = {
    ...expectedSettings,
    ...expectedContract,
    ...expectedRun,
    ...expectedQueue,
    ...comparedElsewhere,
  };
  expect(limits.filter((row) => !((settingOf(row) ?? row.limit) in compared))).toEqual([]);
});

it.each(pages.filter((page) => page !== 'README.md'))('docs/api/README.md links to %s', (page) => {
  expect(read('README.md')).toContain(`](${page})`);
});

const START = join(DOCS, '../README.md');
/** All pages except decisions and the specification, which have start pages of their own. */
const guides = readdirSync(dirname(START), { recursive: true, encoding: 'utf8' }).filter(
  (file) => file.endsWith('.md') && file !== 'README.md' && !/^(adr|spec)\//.test(file),
);

it.each(guides)('docs/%s is linked from docs/README.md, and its first line names its readers', (page) => {
  expect(readFileSync(START, 'utf8')).toContain(`](${page})`);
  const readers = /^# .+\n\nFor .*(application engineers|operators|owners of agents|contributors)/;
  expect(readFileSync(join(dirname(START), page), 'utf8')).toMatch(readers);
});

it('README.md has at most 150 lines', () => {
  expect(readFileSync(join(DOCS, '../../README.md'), 'utf8').split('\n').length - 1).toBeLessThanOrEqual(150);
});
