import { pauseIfLong } from '#platform';
import type { Replay } from './replay.ts';
import type { StoredRows } from './read-page.ts';

/** One row that differs from its replayed stream. */
export interface Difference {
  table: 'streams' | 'thread_summaries' | 'run_summaries';
  /** The thread id, or the run id for `run_summaries`. */
  id: string;
  /** The columns that differ; empty if the row is missing or should not exist. */
  columns: string[];
  /** The same in words, with values. */
  what: string;
}

/**
 * Returns where the stored rows of a Thread differ from its replayed stream; empty if they are equal. Pauses between Runs, because
 * their outputs can be large.
 */
export async function findDifferences(
  { threadId, stream, thread, runs }: StoredRows,
  replayed: Replay,
): Promise<Difference[]> {
  const { version, lastEventId, lastOccurredAt, state, summaries } = replayed;
  const streamNow = version === 0 ? null : { version, lastEventId, lastOccurredAt, state };
  const differences = [
    difference('streams', threadId, stream, streamNow),
    difference('thread_summaries', threadId, thread, summaries.thread),
  ];
  for (const id of new Set([...summaries.runs.keys(), ...runs.keys()])) {
    await pauseIfLong();
    differences.push(difference('run_summaries', id, runs.get(id) ?? null, summaries.runs.get(id) ?? null));
  }
  return differences.filter((found) => found !== null);
}

function difference(table: Difference['table'], id: string, stored: object | null, folded: object | null) {
  if (stored === null && folded === null) return null;
  if (stored === null) return { table, id, columns: [], what: 'is missing' };
  if (folded === null) return { table, id, columns: [], what: 'should not exist' };
  const columns = Object.keys(stored).filter((name) => !sameJson(part(stored, name), part(folded, name)));
  if (columns.length === 0) return null;
  return { table, id, columns, what: describe(stored, folded, '').join('; ') };
}

/** Compares JSON values. Ignores the order of keys, because `jsonb` does not preserve it. */
function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (!isObject(a) || !isObject(b)) return false;
  const keys = Object.keys(a);
  if (keys.length !== Object.keys(b).length || Array.isArray(a) !== Array.isArray(b)) return false;
  return keys.every((key) => sameJson(part(a, key), part(b, key)));
}

/** Describes each innermost value that differs: `state.runs.0.attempt is 1, but its stream says 2`. */
function describe(stored: unknown, folded: unknown, path: string): string[] {
  if (sameJson(stored, folded)) return [];
  if (!isObject(stored) || !isObject(folded))
    return [`${path} is ${show(stored)}, but its stream says ${show(folded)}`];
  const keys = new Set([...Object.keys(stored), ...Object.keys(folded)]);
  return [...keys].flatMap((key) => describe(part(stored, key), part(folded, key), path ? `${path}.${key}` : key));
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
const part = (value: object, key: string): unknown => (value as Record<string, unknown>)[key];

const SHOWN_CHARACTERS = 120;

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'nothing';
  return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
}
