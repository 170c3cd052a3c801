import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { threadEventLogEntry } from '#contract';
import { isKnownEvent, EVENT_TYPES, toLogEntry, type StoredEvent } from '#domain';

/**
 * F12. Every event that was ever stored, spoilt in every way: in place of each of its fields, and of all of them, something
 * else, or nothing; and as of a release to come.
 */
const GOLDEN = join(import.meta.dirname, '../../libs/domain/golden/v1');
const NONSENSE = [undefined, null, 7, -0.5, 'text', '', true, [], [null], {}, { toolCallId: 'x' }];

const golden = readdirSync(GOLDEN).flatMap((name) =>
  (JSON.parse(readFileSync(join(GOLDEN, name), 'utf8')) as { stored: StoredEvent }[]).map(({ stored }) => stored),
);

const spoil = (event: StoredEvent): StoredEvent[] =>
  [
    ...NONSENSE.map((data) => ({ ...event, data })),
    ...Object.keys(event.data).flatMap((field) =>
      NONSENSE.map((value) => ({ ...event, data: { ...event.data, [field]: value } })),
    ),
    { ...event, schemaVersion: EVENT_TYPES[event.type].schemaVersion + 1 },
    { ...event, type: 'future.event' },
  ] as StoredEvent[];

const poison = golden.flatMap(spoil);

test('there is a lot of it', () => {
  expect(new Set(golden.map(({ type }) => type))).toEqual(new Set(Object.keys(EVENT_TYPES)));
  expect(poison.length).toBeGreaterThan(1_000);
});

test('the log shows each as the contract has it, or as unsupported, and never fails', () => {
  const wrong = poison.filter((event) => {
    const entry = toLogEntry({ ...event, public: true });
    // As callers get it: undefined is left out.
    const { success } = threadEventLogEntry.nullable().safeParse(entry && JSON.parse(JSON.stringify(entry)));
    return !success || (!isKnownEvent(event) && entry?.status !== 'unsupported');
  });
  expect(wrong).toEqual([]);
});
