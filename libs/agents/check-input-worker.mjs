/**
 * Checks the input of a tool call by the tool's JSON Schema. Small schemas are checked where the call is; all others are the
 * task `check-input`. Plain JavaScript, because the task pool loads it; check-input-worker.d.mts has the types.
 */
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';

const MAX_PROBLEMS = 10;
const MAX_SHOWN = 500;

const OPTIONS = {
  strict: false,
  logger: false,
  allErrors: true,
  /** Ignores properties that the input inherits from `Object.prototype`. */
  ownProperties: true,
  /** Treats formats as annotations (JSON Schema 2020-12, validation, 7.2.1). */
  validateFormats: false,
  meta: false,
  validateSchema: false,
  code: { regExp: Object.assign(regExp, { code: 'regExp' }) },
};

/** Many schemas have patterns that are invalid with the flag `u` (`[\w\-]`). */
function regExp(pattern) {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return new RegExp(pattern);
  }
}

/** Compiles a schema to a function that describes an input's problems. Throws if the schema cannot be checked. */
export function compileCheck(schema) {
  const isOld = typeof schema.$schema === 'string' && /\/draft-0\d\//.test(schema.$schema);
  // Each schema has a compiler of its own, because names in one schema must not clash with those in another.
  // Nothing is fetched. A reference to another document is an error.
  const validate = (isOld ? new Ajv(OPTIONS) : new Ajv2020(OPTIONS)).compile(schema);
  // Such a schema would return promises.
  if ('$async' in validate) throw new Error('an input schema is asynchronous');
  return (input) => (validate(input) ? [] : describeProblems(validate.errors ?? []));
}

function describeProblems(problems) {
  const lines = problems.slice(0, MAX_PROBLEMS).map(describeProblem);
  return problems.length > MAX_PROBLEMS ? [...lines, `- and ${problems.length - MAX_PROBLEMS} more`] : lines;
}

function describeProblem({ instancePath, message = 'is wrong', params }) {
  const { additionalProperty, unevaluatedProperty, allowedValues, allowedValue } = params;
  const detail = additionalProperty ?? unevaluatedProperty ?? allowedValues ?? allowedValue;
  const shown = detail === undefined ? '' : `: ${cut(JSON.stringify(detail), MAX_SHOWN)}`;
  return `- ${cut(instancePath, MAX_SHOWN) || 'the input'} ${message}${shown}`;
}

export function cut(text, length) {
  return text.length <= length ? text : `${text.slice(0, length)}…`;
}

export default ({ schema, input }) => {
  try {
    return { value: { problems: compileCheck(schema)(input) } };
  } catch (error) {
    return { value: { unchecked: cut(String(error?.message ?? error), MAX_SHOWN) } };
  }
};
