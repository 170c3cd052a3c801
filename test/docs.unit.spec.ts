import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { agentManifestSchema } from '#agents';
import { LIMITS } from '#contract';
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
const valueOf = (limit: string): string | undefined => rows.find((row) => row.limit === limit)?.value;

it('says the defaults of the settings that limit callers, each', () => {
  const config = configSchema.parse({});
  const expected = {
    RATE_LIMIT_PER_MINUTE: `${number(config.RATE_LIMIT_PER_MINUTE)} a minute`,
    STREAMS_PER_TOKEN: number(config.STREAMS_PER_TOKEN),
    BODY_LIMIT_BYTES: mebibytes(config.BODY_LIMIT_BYTES),
    EVENTS_PER_BATCH: `1 to ${number(config.EVENTS_PER_BATCH)}`,
    MESSAGE_TEXT_LIMIT: `1 to ${number(config.MESSAGE_TEXT_LIMIT)} characters`,
    IDEMPOTENCY_KEY_AGE_MS: hours(config.IDEMPOTENCY_KEY_AGE_MS),
    FILE_LIMIT_BYTES: mebibytes(config.FILE_LIMIT_BYTES),
    INLINE_FILE_LIMIT_BYTES: mebibytes(config.INLINE_FILE_LIMIT_BYTES),
    FILES_PER_THREAD: number(config.FILES_PER_THREAD),
    DRAFTS_PER_TOKEN: number(config.DRAFTS_PER_TOKEN),
    DRAFT_AGE_MS: hours(config.DRAFT_AGE_MS),
  };
  const told = rows.flatMap(({ value, setting }) => {
    const name = /^`([A-Z_]+)`/.exec(setting)?.[1];
    return name === undefined ? [] : [[name, value]];
  });
  expect(Object.fromEntries(told)).toEqual(expected);
  // A new setting that reads like a limit belongs into the table.
  const limits = Object.keys(configSchema.shape).filter((name) => /LIMIT|_PER_|_AGE_/.test(name));
  expect(limits.filter((name) => !(name in expected))).toEqual(['RATE_LIMIT_STORE']);
});

it('says the limits of the contract, each', () => {
  const expected: Record<keyof typeof LIMITS, [limit: string, value: string] | null> = {
    userId: ['`userId`', `1 to ${number(LIMITS.userId)} characters`],
    clientExternalRef: ['`client_external_ref`', `1 to ${number(LIMITS.clientExternalRef)} characters`],
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
    // Whoever sends a cursor has it from us.
    cursor: null,
    fileName: ['`name` of an inline file', `1 to ${number(LIMITS.fileName)} characters`],
    contentType: ['`contentType` of an inline file', `1 to ${number(LIMITS.contentType)} characters`],
  };
  expect(Object.keys(expected)).toEqual(Object.keys(LIMITS));
  for (const row of Object.values(expected)) if (row !== null) expect([row[0], valueOf(row[0])]).toEqual(row);
});

it('says what limits a Run by default', () => {
  const { limits } = agentManifestSchema.parse({ name: 'any', harness: { name: 'echo' } });
  const { queueMs, workMs, waitMs, maxLosses, maxSteps } = limits;
  const expected = {
    'Waiting for a free worker': `${queueMs / (60 * SECOND_MS)} min`,
    'Working, all attempts together': hours(workMs),
    'Waiting for a person': `${waitMs / (24 * 3_600 * SECOND_MS)} days`,
    'Losses and retryable failures in a row': String(maxLosses),
    'Model steps': String(maxSteps),
  };
  expect(Object.keys(expected)).toHaveLength(Object.keys(limits).length);
  for (const [limit, value] of Object.entries(expected)) expect([limit, valueOf(limit)]).toEqual([limit, value]);
});

/** As GitHub makes them of headings. */
function anchorsOf(page: string): string[] {
  const headings = [...read(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading.toLowerCase());
  return headings.map((heading) => heading.replaceAll(/[^\w\s-]/g, '').replaceAll(' ', '-'));
}

it.each(pages)('%s links to what is there, and is linked to', (page) => {
  const links = [...read(page).matchAll(/\]\(([^)#]*)(?:#([^)]*))?\)/g)];
  const broken = links.filter(([, file, anchor]) => {
    const target = file || page;
    return !existsSync(join(DOCS, target)) || (anchor !== undefined && !anchorsOf(target).includes(anchor));
  });
  expect(broken.map(([link]) => link)).toEqual([]);
  if (page !== 'README.md') expect(read('README.md')).toContain(`](${page})`);
});
