import { ownTurn } from './own-turn.ts';

/** The text that one step produces, UTF-16 units: about a millisecond of work. */
const STEP_UNITS = 128 * 1024;

/** The units that each value counts in addition to the length of a text. */
const UNITS_PER_VALUE = 8;

/**
 * Returns whether a value is too large for one step: whether `JSON.stringify` of it would take more than a few milliseconds.
 * Stops looking as soon as that is known.
 */
export function isLargeJson(value: unknown): boolean {
  let units = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    units += UNITS_PER_VALUE + (typeof next === 'string' ? next.length : 0);
    if (units > STEP_UNITS) return true;
    if (typeof next !== 'object' || next === null) continue;
    const children = Array.isArray(next) ? next : Object.values(next);
    if (children.length > STEP_UNITS / UNITS_PER_VALUE) return true;
    open.push(...(children as unknown[]));
  }
  return false;
}

/** Computes `Buffer.from(JSON.stringify(value))`, one step in each turn of the event loop. */
export async function largeJson(value: unknown): Promise<Buffer<ArrayBuffer>> {
  const steps: Buffer[] = [];
  for await (const step of jsonSteps(value)) steps.push(Buffer.from(step));
  return Buffer.concat(steps);
}

/**
 * Yields the JSON text of a value in steps, each in a separate turn. `sorted` orders the fields of objects by name, so that
 * equal values have equal texts.
 */
export async function* jsonSteps(value: unknown, { sorted = false } = {}): AsyncGenerator<string> {
  let step = '';
  for (const part of jsonParts(value, sorted)) {
    step += part;
    if (step.length < STEP_UNITS) continue;
    yield step;
    step = '';
    await ownTurn();
  }
  yield step;
}

function* jsonParts(value: unknown, sorted: boolean): Generator<string> {
  if (typeof value === 'string' && value.length > STEP_UNITS) {
    yield* textParts(value);
    return;
  }
  if (typeof value !== 'object' || value === null || typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    yield JSON.stringify(value) ?? 'null';
    return;
  }
  const isList = Array.isArray(value);
  let separator = isList ? '[' : '{';
  for (const [name, child] of isList ? value.entries() : fieldsOf(value, sorted)) {
    yield isList ? separator : `${separator}${JSON.stringify(name)}:`;
    yield* jsonParts(child, sorted);
    separator = ',';
  }
  if (separator !== ',') yield separator;
  yield isList ? ']' : '}';
}

function fieldsOf(value: object, sorted: boolean): [string, unknown][] {
  const all: [string, unknown][] = Object.entries(value);
  const fields = all.filter(([, child]) => child !== undefined);
  return sorted ? fields.sort(([a], [b]) => (a < b ? -1 : 1)) : fields;
}

/** Yields a long text. Never cuts a surrogate pair, whose halves would be escaped. */
function* textParts(text: string): Generator<string> {
  yield '"';
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + STEP_UNITS, text.length);
    if (isHighSurrogate(text.charCodeAt(to - 1)) && to < text.length) to++;
    yield JSON.stringify(text.slice(from, to)).slice(1, -1);
    from = to;
  }
  yield '"';
}

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
