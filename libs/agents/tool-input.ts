import { createContext, Script } from 'node:vm';
import { Ajv, type ErrorObject, type Options, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import type { ToolCall } from '#domain';
import type { Tool } from './harness.ts';

/**
 * How long one check may take, milliseconds: schemas come from tool servers, and a pattern or references of references can
 * take for ever. Far more than one takes that means well, also on a machine that is busy.
 */
const MAX_MS = 500;
const MAX_PROBLEMS = 10;
const MAX_SHOWN = 500;

/** Answers the problems of an input, none where it fits. Null: this schema cannot be checked. */
type Check = ((input: unknown) => ErrorObject[]) | null;

/** One compilation a schema, for as long as somebody has the schema. */
const checks = new WeakMap<object, Check>();

/**
 * What is wrong with a call's input, in words for the model and without the input's values; null where the tool may be given
 * it. A schema that cannot be checked here, or not in time, refuses nothing: its tool looks at its input itself. `onUnchecked`
 * hears why, once a schema.
 */
export function toolInputProblem(
  { name, inputSchema }: Pick<Tool, 'name' | 'inputSchema'>,
  { toolInput, invalidInput }: Pick<ToolCall, 'toolInput' | 'invalidInput'>,
  onUnchecked: (error: unknown) => void,
): string | null {
  if (invalidInput !== undefined)
    return `The input must be a JSON object. What was written begins: ${cut(invalidInput, MAX_SHOWN)}`;
  try {
    if (!checks.has(inputSchema)) checks.set(inputSchema, compile(inputSchema));
    const problems = checks.get(inputSchema)?.(toolInput) ?? [];
    if (problems.length === 0) return null;
    const lines = problems.slice(0, MAX_PROBLEMS).map(describeProblem);
    const more = problems.length > MAX_PROBLEMS ? [`- and ${problems.length - MAX_PROBLEMS} more`] : [];
    return [`The input does not fit the tool ${name}:`, ...lines, ...more].join('\n');
  } catch (error) {
    checks.set(inputSchema, null);
    onUnchecked(error);
    return null;
  }
}

/** Throws what is wrong with the schema. Nothing is fetched: a reference to elsewhere is such an error. */
function compile(schema: Tool['inputSchema']): Check {
  const validate = inTime(() => validatorOf(schema));
  // It would answer promises.
  if ('$async' in validate) throw new Error('an input schema is asynchronous');
  return (input) => inTime(() => (validate(input) ? [] : (validate.errors ?? [])));
}

const OPTIONS: Options = {
  strict: false,
  logger: false,
  allErrors: true,
  /** What a name of `Object.prototype` has is not given by the input. */
  ownProperties: true,
  /** A format is a remark (JSON Schema 2020-12, validation, 7.2.1). */
  validateFormats: false,
  meta: false,
  validateSchema: false,
  code: { regExp: Object.assign(regExp, { code: 'regExp' }) },
};

/** Each with a compiler of its own, which goes with it: names in one must not meet those in another. */
function validatorOf(schema: Tool['inputSchema']): ValidateFunction {
  const { $schema } = schema;
  const isOld = typeof $schema === 'string' && /\/draft-0\d\//.test($schema);
  return (isOld ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)).compile(schema);
}

/** Many schemas in the world have patterns that are none with Unicode on (`[\w\-]`). */
function regExp(pattern: string): RegExp {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
}

const context: { work?: () => unknown } = createContext({});
const script = new Script('work()');

/** Throws when it takes longer than MAX_MS: the one way to end a regular expression that does not end. */
function inTime<T>(work: () => T): T {
  context.work = work;
  try {
    return script.runInContext(context, { timeout: MAX_MS }) as T;
  } finally {
    delete context.work;
  }
}

function describeProblem({ instancePath, message = 'is wrong', params }: ErrorObject): string {
  const { additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = params as Record<string, unknown>;
  const detail = additionalProperty ?? unevaluatedProperty ?? allowedValues ?? allowedValue;
  const shown = detail === undefined ? '' : `: ${cut(JSON.stringify(detail), MAX_SHOWN)}`;
  return `- ${cut(instancePath, MAX_SHOWN) || 'the input'} ${message}${shown}`;
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}
