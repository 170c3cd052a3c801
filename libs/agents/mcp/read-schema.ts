import { isMap, isPresent, withoutNulls, type JsonMap } from './message.ts';

/** The input schema of a tool. */
export type InputSchema = { type: 'object'; [keyword: string]: unknown };

/** A schema that providers refuse. Its message is the end of a sentence that begins with the schema. */
export class BadSchema extends Error {
  override name = 'BadSchema';
}

const NO_OBJECT = 'does not have the type "object"';

/**
 * Reads the input schema of a tool. A missing or empty schema is that of a tool without parameters. Throws BadSchema for one
 * that providers refuse: they refuse the whole request with it, and not the tool alone.
 */
export function readSchema(given: unknown): InputSchema {
  const isEmpty = !isPresent(given) || isEmptyList(given);
  if (!isEmpty && !isMap(given)) throw new BadSchema(NO_OBJECT);
  const schema = isEmpty ? {} : schemaWithoutNulls(given as JsonMap);
  if (!isObject(schema)) throw new BadSchema(NO_OBJECT);
  return { ...readPart({ ...schema, type: 'object' }, []), type: 'object' };
}

/** Also where the type may be null besides, and where only the properties show it. */
function isObject(schema: JsonMap): boolean {
  const { type = Object.keys(schema).length === 0 || 'properties' in schema ? 'object' : undefined } = schema;
  const types = [type].flat().filter((name) => name !== 'null');
  return types.length === 1 && types[0] === 'object';
}

/** Keywords whose value is a schema, or a list of schemas. */
const PARTS = new Set([
  'additionalItems',
  'additionalProperties',
  'allOf',
  'anyOf',
  'contains',
  'else',
  'if',
  'items',
  'not',
  'oneOf',
  'prefixItems',
  'propertyNames',
  'then',
  'unevaluatedItems',
  'unevaluatedProperties',
]);
/** Keywords whose value has schemas by name. */
const NAMED = new Set(['$defs', 'definitions', 'dependentSchemas', 'patternProperties', 'properties']);
const TYPES: readonly unknown[] = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];

/** Returns a schema and the schemas in it as providers take them. `path` leads to it. */
function readPart(schema: JsonMap, path: readonly string[]): JsonMap {
  const entries = Object.entries(schema).map(([keyword, value]) => [keyword, readKeyword(keyword, value, path)]);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as JsonMap;
}

/** Returns undefined for a keyword that says nothing. */
function readKeyword(keyword: string, value: unknown, path: readonly string[]): unknown {
  const here = [...path, keyword];
  if (keyword === 'type') return readType(value, path);
  if (keyword === 'required') return readRequired(value, path);
  if (keyword === 'enum') return readEnum(value, path);
  if (keyword === 'items' && isEmptyList(value)) return {};
  if (keyword === 'items' && ![value].flat().every(isSchema)) throw bad('has "items" that are not a schema', path);
  if (NAMED.has(keyword)) return readNamed(value, keyword, path);
  if (!PARTS.has(keyword)) return value;
  if (!Array.isArray(value)) return isMap(value) ? readPart(value, here) : value;
  return value.map((part: unknown) => (isMap(part) ? readPart(part, here) : part));
}

function readType(type: unknown, path: readonly string[]): unknown {
  const names: unknown[] = [type].flat();
  if (names.length === 0 || !names.every((name) => TYPES.includes(name))) throw bad('has an unknown type', path);
  return type;
}

/** In draft 3 a property says of itself that it is required. */
function readRequired(required: unknown, path: readonly string[]): unknown {
  if (typeof required === 'boolean') return undefined;
  if (!Array.isArray(required) || required.some((name) => typeof name !== 'string'))
    throw bad('has a "required" that is not a list of names', path);
  return required;
}

/** An empty list would allow nothing. It is of a server that knows no values. */
function readEnum(values: unknown, path: readonly string[]): unknown {
  if (values === null || isEmptyList(values)) return undefined;
  if (!Array.isArray(values)) throw bad('has an "enum" that is not a list of values', path);
  return values;
}

/** A schema may be true or false, which providers do not take as that of a property. */
function readNamed(given: unknown, keyword: string, path: readonly string[]): unknown {
  if (isEmptyList(given)) return {};
  const isProperties = keyword === 'properties';
  if (!isMap(given)) {
    if (isProperties) throw bad('has "properties" that are not an object', path);
    return given;
  }
  const entries = Object.entries(given).map(([name, schema]) => {
    if (isMap(schema)) return [name, readPart(schema, [...path, keyword, name])];
    if (!isProperties) return [name, schema];
    if (!isSchema(schema)) throw bad(`has a property ${showName(name)} that is not a schema`, path);
    return [name, schema === true ? {} : { not: {} }];
  });
  return Object.fromEntries(entries) as JsonMap;
}

const isSchema = (value: unknown): boolean => isMap(value) || typeof value === 'boolean';
/** PHP writes an empty map as an empty list. */
const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function bad(what: string, path: readonly string[]): BadSchema {
  return new BadSchema(path.length === 0 ? what : `${what}, in ${showName(path.join('.'))}`);
}

const MAX_SHOWN = 100;

/** Returns a name as a warning has it: short, and in one line. */
export const showName = (name: string): string => JSON.stringify(name.slice(0, MAX_SHOWN));

/** Keywords whose value may be null. */
const VALUES = new Set(['const', 'default', 'enum', 'example', 'examples']);

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
