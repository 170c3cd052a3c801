import { isMap, withoutNulls, type JsonMap } from './message.ts';

/** A tool in a server's list, with the fields that Spool uses. */
export interface ListedTool {
  name: string;
  title?: string;
  description?: string;
  annotations?: { title?: string; readOnlyHint?: boolean; idempotentHint?: boolean };
  inputSchema: { type: 'object'; [keyword: string]: unknown };
}

/**
 * Reads one tool of a server's list. Treats null, and an optional field of a wrong type, as absent. Returns the reason as text
 * if the tool cannot be used.
 */
export function readTool(given: unknown, index: number): ListedTool | string {
  const { name, title, description, annotations, inputSchema } = isMap(given) ? given : ({} as JsonMap);
  if (typeof name !== 'string' || name === '') return `Entry ${index + 1} of the list has no name.`;
  const schema = readSchema(inputSchema);
  if (typeof schema === 'string') return `The input schema of ${showName(name)} ${schema}.`;
  return {
    name,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(isMap(annotations) && { annotations: readAnnotations(annotations) }),
    inputSchema: schema,
  };
}

function readAnnotations({ title, readOnlyHint, idempotentHint }: JsonMap): NonNullable<ListedTool['annotations']> {
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof readOnlyHint === 'boolean' && { readOnlyHint }),
    ...(typeof idempotentHint === 'boolean' && { idempotentHint }),
  };
}

const MAX_SHOWN = 100;

/** Returns a name for a warning: quoted, short, and on one line. */
export const showName = (name: string): string => JSON.stringify(name.slice(0, MAX_SHOWN));

/** Returns the checked schema, or the end of a sentence that says what is wrong with it. */
function readSchema(given: unknown): ListedTool['inputSchema'] | string {
  const schema = isMap(given) ? schemaWithoutNulls(given) : {};
  const { required = [], properties } = schema;
  if (schema['type'] !== 'object') return 'does not have the type "object"';
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    return 'has a "required" that is not a list of names';
  const checked = readProperties(properties);
  if (typeof checked === 'string') return checked;
  return { ...schema, type: 'object', ...(properties !== undefined && { properties: checked }) };
}

/** Accepts an empty list, because PHP writes an empty map so. Replaces the schemas true and false, which providers refuse. */
function readProperties(given: unknown = {}): JsonMap | string {
  if (Array.isArray(given) && given.length === 0) return {};
  if (!isMap(given)) return 'has "properties" that are not an object';
  const entries = Object.entries(given);
  const misfit = entries.find(([, schema]) => !isMap(schema) && typeof schema !== 'boolean');
  if (misfit !== undefined) return `has a property ${showName(misfit[0])} that is not a schema`;
  const schemaOf = (schema: unknown): unknown => (schema === true ? {} : schema === false ? { not: {} } : schema);
  return Object.fromEntries(entries.map(([name, schema]) => [name, schemaOf(schema)]));
}

/** Keywords whose value may be null. */
const VALUES = new Set(['const', 'default', 'enum', 'example', 'examples']);
/** Keywords whose value is a map of schemas. */
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']);

function schemaWithoutNulls(schema: JsonMap): JsonMap {
  const kept = Object.entries(schema).filter(([keyword, value]) => value !== null || VALUES.has(keyword));
  return Object.fromEntries(
    kept.map(([keyword, value]) => {
      if (VALUES.has(keyword)) return [keyword, value];
      return [keyword, NAMED.has(keyword) && isMap(value) ? namedWithoutNulls(value) : partWithoutNulls(value)];
    }),
  );
}

function namedWithoutNulls(schemas: JsonMap): JsonMap {
  const entries = Object.entries(withoutNulls(schemas));
  return Object.fromEntries(entries.map(([name, schema]) => [name, partWithoutNulls(schema)]));
}

function partWithoutNulls(part: unknown): unknown {
  if (Array.isArray(part)) return part.filter((entry) => entry !== null).map(partWithoutNulls);
  return isMap(part) ? schemaWithoutNulls(part) : part;
}
