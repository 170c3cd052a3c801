import { join } from 'node:path';
import { BOUNDS, type ToolCall } from '#domain';
import { TaskFailed, type RunTask, type Task } from '#task-pool';
import { compileCheck, cut } from './check-input-worker.mjs';
import { firstInexact } from './exact-numbers.ts';
import type { Tool } from './harness.ts';
import { jsonWeight } from './json-weight.ts';

const MAX_SHOWN = 500;
const { depth, parts } = BOUNDS.messages;
const INPUT_BOUNDS = `at most ${parts.value.toLocaleString('en')} parts and ${depth.value} levels`;

/** A check of a schema and an input up to these weights takes at most 20 ms, unless the schema has one of the keywords. */
const LIGHT_SCHEMA = BOUNDS.toolCalls.lightSchema.value;
const LIGHT_INPUT = BOUNDS.toolCalls.lightInput.value;
/** Keywords whose cost does not depend on the sizes of schema and input alone. */
const HEAVY_KEYWORDS = ['pattern', 'patternProperties', 'uniqueItems', '$ref', '$dynamicRef', '$recursiveRef'];
const MAX_WEIGHT = BOUNDS.toolCalls.checked.value;

type Schema = Tool['inputSchema'];
type Checked = { problems: string[] } | { unchecked: string };

const CHECK_INPUT: Task<{ schema: Schema; input: unknown }, Checked> = {
  name: 'check-input',
  module: join(import.meta.dirname, 'check-input-worker.mjs'),
  limits: { wallMs: BOUNDS.toolCalls.checkTime.value, cpuMs: BOUNDS.toolCalls.checkCpu.value },
};

/** Where the check of a schema runs: here, in the task pool, or nowhere. */
type Check = ((input: unknown) => string[]) | 'pool' | null;

/** The decision for each schema, for as long as the schema is in use. */
const checks = new WeakMap<object, Check>();

interface CheckContext {
  runTask: RunTask;
  signal: AbortSignal;
  /** Called once for each schema that cannot be checked, with the reason. */
  onUnchecked: (error: unknown) => void;
}

/**
 * What is wrong with a call's input, in words for the model and without the input's values; null where the tool may be given
 * it. A schema that cannot be checked, or not within the limits of the task pool, refuses nothing: its tool looks at its input
 * itself. Throws the signal's reason.
 */
export async function toolInputProblem(
  { name, inputSchema }: Pick<Tool, 'name' | 'inputSchema'>,
  { toolInput, invalidInput }: Pick<ToolCall, 'toolInput' | 'invalidInput'>,
  context: CheckContext,
): Promise<string | null> {
  if (invalidInput !== undefined) return invalidInputProblem(invalidInput);
  try {
    const problems = await problemsOf(inputSchema, toolInput, context);
    return problems.length === 0
      ? null
      : [`The input does not match the schema of the tool ${name}:`, ...problems].join('\n');
  } catch (error) {
    context.signal.throwIfAborted();
    // The next call may find room, or a child that nobody kills.
    if (!(error instanceof TaskFailed) || error.isOverLimit) checks.set(inputSchema, null);
    context.onUnchecked(error);
    return null;
  }
}

function invalidInputProblem(written: string): string {
  const shown = cut(written, MAX_SHOWN);
  return firstInexact(written) === written
    ? `The number ${shown} is too large to be passed on exactly. Write it as text, in quotation marks.`
    : `The input must be a JSON object (${INPUT_BOUNDS}). The input begins: ${shown}`;
}

/** Throws the problem of the schema. */
async function problemsOf(schema: Schema, input: unknown, { runTask, signal }: CheckContext): Promise<string[]> {
  if (!checks.has(schema)) checks.set(schema, isLight(schema) ? compileCheck(schema) : 'pool');
  const check = checks.get(schema) ?? null;
  if (check === null) return [];
  const weight = jsonWeight(input, MAX_WEIGHT);
  if (check !== 'pool' && weight <= LIGHT_INPUT) return check(input);
  if (weight > MAX_WEIGHT || jsonWeight(schema, MAX_WEIGHT) > MAX_WEIGHT)
    throw new Error('The schema or the input is too large to check.');
  const { value } = await runTask(CHECK_INPUT, { value: { schema, input } }, signal);
  if ('unchecked' in value) throw new Error(value.unchecked);
  return value.problems;
}

function isLight(schema: Schema): boolean {
  if (jsonWeight(schema, LIGHT_SCHEMA) > LIGHT_SCHEMA) return false;
  const text = JSON.stringify(schema);
  return !HEAVY_KEYWORDS.some((keyword) => text.includes(`"${keyword}":`));
}
