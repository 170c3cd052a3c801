import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Command } from './commands.ts';
import { decide } from './decide.ts';
import { command } from './decider.testing.ts';
import { EVENT_TYPES, isKnownEvent } from './event-types.ts';
import type { StoredEvent, ThreadEventType } from './events.ts';
import { evolve } from './evolve.ts';
import { ADDED_TO, LATER_TYPES, describeAdditions, describeStory } from './golden.testing.ts';
import { toExtendedLogEntry, toLogEntry, type ExtendedLogEntry, type LogEntry } from './log-entry.ts';
import { isRejection } from './rejection.ts';
import { initialState, type ThreadState } from './state.ts';

/**
 * Stored events must stay readable forever (docs/adr/0001). `golden/v<schema version>/<type>.json` holds events of one type as
 * that version wrote them, with their log entries. `golden/additions` holds events with optional fields. For a new type or
 * version, `WRITE_GOLDEN=1` writes the missing file. It never overwrites a file.
 */
const GOLDEN = join(import.meta.dirname, 'golden');

interface Golden {
  stored: StoredEvent;
  shown: LogEntry | null;
  /** The entry with its optional fields; absent in older files. */
  extended?: ExtendedLogEntry | null;
}

const types = Object.keys(EVENT_TYPES) as ThreadEventType[];
const versions = types.flatMap((type) =>
  Array.from({ length: EVENT_TYPES[type].schemaVersion }, (_, i) => [type, i + 1] as const),
);

const pathOf = (type: string, version: number) => join(GOLDEN, `v${version}`, `${type}.json`);
const pathOfAdditions = (type: string) => join(GOLDEN, 'additions', `${type}.json`);
const readGolden = (path: string) => JSON.parse(readFileSync(path, 'utf8')) as Golden[];
const read = (type: string, version: number) => readGolden(pathOf(type, version));

beforeAll(() => {
  if (process.env.WRITE_GOLDEN !== '1') return;
  const story = describeStory();
  for (const type of types) write(pathOf(type, EVENT_TYPES[type].schemaVersion), type, story);
  for (const type of ADDED_TO) write(pathOfAdditions(type), type, describeAdditions());
});

function write(path: string, type: ThreadEventType, story: StoredEvent[]): void {
  if (existsSync(path)) return;
  mkdirSync(dirname(path), { recursive: true });
  const events = story.filter((event) => event.type === type);
  const golden = events.map((stored) => {
    return { stored, shown: toLogEntry(stored), extended: toExtendedLogEntry(stored) };
  });
  writeFileSync(path, `${JSON.stringify(golden, null, 2)}\n`);
}

const digestOf = (golden: Golden[]) => {
  const stored = JSON.stringify(golden.map((each) => each.stored));
  return createHash('sha256').update(stored).digest('hex').slice(0, 16);
};

describe.each(versions)('%s, version %d', (type, version) => {
  test('has the digest of its release', () => {
    const digest = digestOf(read(type, version));
    // A released shape is a promise. Do not change the digest; add a schema version, and an upcaster with the first one.
    expect([type, version, digest]).toEqual([type, version, RELEASED[`${type} ${version}`]]);
  });

  test('has at least one stored event, and can be read', () => {
    expectReadBack(read(type, version), type, version);
  });
});

describe.each(ADDED_TO)('optional fields of %s', (type) => {
  test('have the digest of their release', () => {
    const golden = readGolden(pathOfAdditions(type));
    // A new optional field is allowed if events without a value omit it (docs/adr/0001).
    expect([type, digestOf(golden)]).toEqual([type, ADDED[type]]);
    expectReadBack(golden, type, 1);
  });

  test('are written by this release, and change nothing else of the released shape', () => {
    const written = describeAdditions().filter((event) => event.type === type);
    const released = readGolden(pathOfAdditions(type)).map(({ stored }) => stored);
    expect(shapesOf(written)).toEqual(shapesOf(released));
    const [without] = read(type, 1);
    for (const { data } of released)
      expect(Object.keys(data)).toEqual(expect.arrayContaining(Object.keys(without!.stored.data)));
  });
});

function expectReadBack(golden: Golden[], type: string, version: number): void {
  expect(golden.length).toBeGreaterThan(0);
  for (const { stored, shown, extended } of golden) {
    expect(stored).toMatchObject({ type, schemaVersion: version });
    expect(isKnownEvent(stored)).toBe(true);
    expect(toLogEntry(stored)).toEqual(shown);
    if (extended !== undefined) expect(toExtendedLogEntry(stored)).toEqual(extended);
  }
}

test('this release writes events in the shapes of the golden files of the current versions', () => {
  const story = describeStory();
  expect(new Set(story.map(({ type }) => type))).toEqual(new Set(types));
  for (const type of types) {
    const written = story.filter((event) => event.type === type);
    const released = read(type, EVENT_TYPES[type].schemaVersion).map(({ stored }) => stored);
    expect([type, shapesOf(written)]).toEqual([type, shapesOf(released)]);
  }
});

/** The fields of every entry that say nothing about the event. */
const PLACE_OF_ENTRY = { id: '', occurredAt: '', runId: '', status: '', durationMs: null, tokens: null };

test('events of releases without the optional fields show only the fields that they have', () => {
  const besides = types.flatMap((type) =>
    read(type, 1).flatMap(({ stored, shown }) => {
      const plain = shown ?? PLACE_OF_ENTRY;
      const added = Object.entries(toExtendedLogEntry(stored) ?? {}).filter(([name]) => !(name in plain));
      return added.map(([name, value]) => `${type} ${name}: ${JSON.stringify(value)}`);
    }),
  );
  expect([...new Set(besides)].sort()).toEqual([
    'files.updated action: "attached"',
    'files.updated action: "deleted"',
    'files.updated action: "detached"',
    'message.added fileIds: ["01F00000000000000000000000"]',
    'message.added fileIds: []',
    'run.failed error: {"code":"provider_auth","retryable":false}',
    'tool.confirmation_decided content: "decided"',
    'tool.confirmation_decided decision: "allow_once"',
    'tool.confirmation_decided decision: "reject_once"',
    'tool.confirmation_decided requestId: "Q1"',
    'tool.confirmation_decided requestId: "Q2"',
    'tool.confirmation_decided toolCallId: "call of Q1"',
    'tool.confirmation_decided toolCallId: "call of Q2"',
    'tool.confirmation_decided type: "session.status"',
    'tool.confirmation_requested title: "Write it down"',
  ]);
});

test('each reference of the caller adds one field to the released shape, only if it was given', () => {
  const [released] = read('thread.created', 1);
  const writtenBy = (create: Command) => {
    const decision = decide([create], initialState, '1970-01-01T00:00:00.000Z');
    return isRejection(decision) ? decision : decision.events.map(({ type, data }) => [type, data]);
  };
  const { data } = released!.stored;
  expect(EVENT_TYPES['thread.created'].schemaVersion).toBe(1);
  expect(writtenBy(command.create())).toStrictEqual([['thread.created', data]]);
  const withReference = { ...data, clientExternalRef: 'ticket' };
  expect(writtenBy(command.create({ clientExternalRef: 'ticket' }))).toStrictEqual([['thread.created', withReference]]);
  const externalRef = { value: 'ticket', tokenId: 'token' };
  expect(writtenBy(command.create({ externalRef }))).toStrictEqual([['thread.created', { ...data, externalRef }]]);
});

test('the golden files form one stream that can be folded', () => {
  const told = types.filter((type) => !LATER_TYPES.includes(type));
  const stored = told.flatMap((type) => read(type, 1)).map((golden) => golden.stored);
  const stream = stored.sort((a, b) => a.version - b.version);
  expect(stream.map(({ version }) => version)).toEqual(stream.map((_, i) => i + 1));
  let state: ThreadState = initialState;
  for (const event of stream) state = evolve(state, event);
  const end = { lifecycle: 'terminated', status: 'TERMINATED', runs: [], newestRun: { status: 'cancelled' } };
  expect(state).toMatchObject(end);
});

test('every golden file belongs to a known type and version', () => {
  const files = readdirSync(GOLDEN).flatMap((folder) =>
    readdirSync(join(GOLDEN, folder)).map((file) => `${folder}/${file}`),
  );
  const known = versions.map(([type, version]) => `v${version}/${type}.json`);
  expect(files.sort()).toEqual([...known, ...ADDED_TO.map((type) => `additions/${type}.json`)].sort());
});

/** Returns the distinct shapes: the names and types of the fields. */
function shapesOf(events: StoredEvent[]): string[] {
  return [...new Set(events.map((event) => JSON.stringify(shapeOf(event))))].sort();
}

function shapeOf(value: unknown): unknown {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.map(shapeOf);
  if (typeof value !== 'object') return typeof value;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(fields.map(([name, field]) => [name, shapeOf(field)]));
}

/** The first 16 digits of the SHA-256 of the released events. */
const RELEASED: Record<string, string> = {
  'assistant.message_added 1': '0eeb97213aa437be',
  'assistant.text_added 1': '83635f6a19b93f58',
  'assistant.thinking_added 1': 'bc359baefe0edfe7',
  'file.changed 1': '8788d91ff1210e4d',
  'files.updated 1': 'c437a87a55c37b1b',
  'message.added 1': '0e28f519774fc26c',
  'run.cancelled 1': '3fcd81cf77ecef6e',
  'run.claimed 1': '34c4db45a0952474',
  'run.completed 1': 'eb8b826d96cc709d',
  'run.expired 1': '7ea8a921014533f8',
  'run.failed 1': 'f490c58beaed418e',
  'run.queued 1': 'e6b5e32c884bbd39',
  'run.requeued 1': '25858ec2deb7977e',
  'run.resumed 1': 'e0888363364abb3e',
  'run.started 1': '30e5283abd569e31',
  'run.waiting 1': 'a7d727659544d5de',
  'thread.archived 1': 'a8495d46d69f58d6',
  'thread.created 1': 'f3483a8063544966',
  'thread.status_entered 1': 'f6392fe9a40c441e',
  'thread.terminated 1': 'f504cab1b37004a4',
  'thread.title_set 1': 'a22681e7482ad996',
  'thread.unarchived 1': 'f49f6994ae53a924',
  'tool.completed 1': 'b64b7c36efa96aaa',
  'tool.confirmation_decided 1': '41f957556808c991',
  'tool.confirmation_requested 1': 'dc134799c0844d47',
  'tool.started 1': '954942d3b31da8d8',
  'usage.recorded 1': '43d0f37407049465',
};

/** The same for events with optional fields. */
const ADDED: Record<(typeof ADDED_TO)[number], string> = {
  'assistant.message_added': 'b0b087195600518e',
  'assistant.text_added': '330353f4d89bb1e3',
  'assistant.thinking_added': '5cc16853f3ca16e1',
  'file.changed': '7853a3d795a83881',
  'files.updated': '06039386cf495b3c',
  'thread.created': '5ac0347c9293d147',
  'thread.status_entered': '203ea4789b3dcfa8',
  'run.claimed': 'fea1deccf0060f39',
  'run.failed': '37117dc0fec516dd',
  'run.queued': '0d770a918a0daa01',
  'run.requeued': '0f18ecc5d06f3a86',
  'tool.completed': 'cc407ce209dad38d',
  'tool.confirmation_requested': '3e15b2bdeb3d97a0',
  'usage.recorded': '3b637102d951027c',
};
