import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createContext, runInContext } from 'node:vm';
import fc from 'fast-check';
import type { StoredEvent } from './events.ts';
import { toExtendedLogEntry, toLogEntry, type ExtendedLogEntry } from './log-entry.ts';
import { anyChances, numbersSteps, RandomLog, storedMessages, type SaidMessage } from './random-log.testing.ts';
import { randomRuns } from './random.testing.ts';

/** The unchanged program of docs/api/events.md. It receives only JSON and imports nothing. */
const PAGE = readFileSync(join(import.meta.dirname, '../../docs/api/events.md'), 'utf8');
const [, program = ''] = /^```js messages\.mjs\n([^]*?)^```$/m.exec(PAGE) ?? [];
const reader = createContext({});
runInContext(program.replace('export function', 'function'), reader);

function read(entries: readonly ExtendedLogEntry[]): SaidMessage[] {
  Object.assign(reader, { json: JSON.stringify(entries) });
  return JSON.parse(runInContext('JSON.stringify(messagesOf(JSON.parse(json)))', reader) as string) as SaidMessage[];
}

const LOGS = 1_000;

/** The deltas of workers that number their steps and lack the ids. */
function withoutIds(events: readonly StoredEvent[]): ExtendedLogEntry[] {
  return events.flatMap((event) => {
    const { runId, attempt } = event;
    if (event.type !== 'assistant.text_added' || runId === null || attempt === null) return [];
    if (!numbersSteps({ id: runId, attempt })) return [];
    const entry = toExtendedLogEntry(event);
    return entry?.messageId === undefined || entry.stepId === undefined ? (entry ?? []) : [];
  });
}

/** Names the case of a rolling upgrade that an entry shows. */
function kindsOf({ type, content, messageId, voidedStepId }: ExtendedLogEntry): string[] {
  if (type === 'agent.message.delta') return [messageId ? 'delta with ids' : 'delta without ids'];
  if (voidedStepId) return ['voided'];
  return content === 'RESCHEDULING' ? ['rescheduled without a step'] : [];
}

test('the reader of docs/api assembles the stored messages of 1,000 random logs', () => {
  const seen = new Map<string, number>();
  let messages = 0;
  const holds = fc.property(anyChances, (chances) => {
    const { events } = new RandomLog(chances);
    const entries = events.flatMap((event) => toExtendedLogEntry(event) ?? []);
    const said = read(entries);
    expect(said).toEqual(storedMessages(events));
    expect(read(events.flatMap((event) => toLogEntry(event) ?? []))).toEqual(said);
    expect(withoutIds(events)).toEqual([]);
    for (const event of events) {
      // An empty last message has no deltas.
      if (event.type !== 'run.completed' || !event.data.finalOutput?.text) continue;
      const last = said.findLast(({ runId }) => runId === event.runId);
      expect(last?.text).toBe(event.data.finalOutput.text);
    }
    messages += said.length;
    for (const { type } of events) seen.set(type, (seen.get(type) ?? 0) + 1);
    for (const kind of entries.flatMap(kindsOf)) seen.set(kind, (seen.get(kind) ?? 0) + 1);
  });
  fc.assert(holds, { ...randomRuns(LOGS), endOnFailure: true });
  expect(messages).toBeGreaterThan(LOGS);
  for (const type of OFTEN) expect([type, (seen.get(type) ?? 0) > LOGS / 20]).toEqual([type, true]);
});

/** The cases that the random logs must contain; without them the test would prove nothing. */
const OFTEN = [
  ...['delta with ids', 'delta without ids', 'rescheduled without a step'],
  ...['assistant.message_added', 'assistant.thinking_added', 'voided', 'run.requeued', 'run.resumed', 'run.failed'],
  ...[
    'run.cancelled',
    'run.expired',
    'run.completed',
    'tool.started',
    'tool.completed',
    'files.updated',
    'file.changed',
  ],
];

test('a log read from a middle entry gives the messages from there on', () => {
  const holds = fc.property(anyChances, fc.nat(200), (chances, from) => {
    const entries = new RandomLog(chances).events.flatMap((event) => toExtendedLogEntry(event) ?? []);
    const rest = read(entries.slice(from));
    const whole = rest.length > 0 ? read(entries).slice(-rest.length) : [];
    // The first message may begin before the page.
    expect(rest.slice(1)).toEqual(whole.slice(1));
    expect(whole[0]?.text.endsWith(rest[0]?.text ?? '') ?? true).toBe(true);
  });
  fc.assert(holds, { ...randomRuns(100), endOnFailure: true });
});

test('extended entries are the default ones plus the optional fields, and decisions', () => {
  const { events } = new RandomLog(fc.sample(anyChances, 1)[0] ?? []);
  for (const event of events.filter(({ type }) => type !== 'tool.confirmation_decided'))
    expect(toExtendedLogEntry(event)).toEqual(toLogEntry(event) && expect.objectContaining(toLogEntry(event)));
});
