import { BOUNDS } from '#domain';
import { jsonWeight } from '../json-weight.ts';

/** A JSON Schema or a part of one. It may have any shape. */
type Schema = Readonly<Record<string, unknown>>;

/** Keywords that OpenAI and Anthropic refuse beside `type: object` at the root of a schema. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];
const MAX_WEIGHT = BOUNDS.transcripts.schemaWeight.value;
const MAX_PARTS = BOUNDS.transcripts.schemaParts.value;
const MAX_LEVELS = BOUNDS.transcripts.schemaLevels.value;

/**
 * The weight (`json-weight.ts`) that references and choices may still add to the schemas of one request. A reference of a few
 * bytes can repeat a large schema.
 */
export interface SchemaRoom {
  left: number;
}

export const newRoom = (): SchemaRoom => ({ left: MAX_WEIGHT });

/** Makes room for what the schema itself has. */
function addOwnWeight(room: SchemaRoom, schema: Schema): void {
  room.left += jsonWeight(schema, Infinity);
}

/** Takes the weight from the room. Returns false, and takes nothing, if too little is left. */
function takes(room: SchemaRoom, weight: number): boolean {
  if (weight > room.left) return false;
  room.left -= weight;
  return true;
}

/**
 * Returns the schema of a tool's input in the form that every server accepts: `type: object` with `properties`, and no choice
 * between schemas at the root. The engine still checks each input against the tool's own schema.
 *
 * Leaves out what exceeds the room. Nested objects may lack `properties`: no server refuses that, and for llama.cpp
 * `properties: {}` means an object without any.
 */
export function toInputSchema(schema: Schema, room: SchemaRoom = newRoom()): Record<string, unknown> {
  addOwnWeight(room, schema);
  const rest = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !REFUSED_AT_ROOT.includes(keyword)));
  const choices = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => listOf(schema[keyword]));
  if ('$ref' in schema) choices.push({ $ref: schema.$ref });
  const properties = merged(
    choices.map((choice) => fieldsOf(resolved(choice, schema).properties)),
    room,
  );
  return { ...rest, type: 'object', properties: { ...properties, ...fieldsOf(schema.properties) } };
}

/** Merges the properties of choices. A property with different schemas may match any of them. */
function merged(choices: readonly Schema[], room: SchemaRoom): Record<string, unknown> {
  const found = new Map<string, Map<string, unknown>>();
  let isFull = false;
  for (const choice of choices) {
    for (const [name, schema] of Object.entries(choice)) {
      isFull ||= !takes(room, 1 + jsonWeight(schema, room.left));
      if (isFull) break;
      const known = found.get(name) ?? new Map<string, unknown>();
      found.set(name, known.set(JSON.stringify(schema), schema));
    }
    if (isFull) break;
  }
  const entries = [...found].map(([name, known]) => {
    const [first, ...others] = known.values();
    return [name, others.length === 0 ? first : { anyOf: [first, ...others] }] as const;
  });
  return Object.fromEntries(entries);
}

/**
 * Returns the schema in the subset of OpenAPI 3.0 that Gemini accepts; null for an object without properties, which it refuses.
 * Resolves references, and leaves out what the subset cannot express and what exceeds the room.
 */
export function toOpenApiSchema(schema: Schema, room: SchemaRoom = newRoom()): Record<string, unknown> | null {
  addOwnWeight(room, schema);
  const lowered = new Lowering(schema, room).lower(schema, []) ?? {};
  return Object.keys(fieldsOf(lowered.properties)).length > 0 ? lowered : null;
}

/** Keywords that mean the same in JSON Schema and in the subset. */
const KEPT = ['description', 'minItems', 'maxItems', 'minimum', 'maximum'] as const;
/** The formats that Gemini accepts. It refuses any other. */
const FORMATS: Readonly<Record<string, readonly unknown[]>> = {
  string: ['date-time'],
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
};

class Lowering {
  private parts = 0;
  private isFull = false;

  constructor(
    private readonly root: Schema,
    private readonly room: SchemaRoom,
  ) {}

  /** `path` has the reference of each level above, undefined for a level without one. Returns null for what exceeds the room. */
  lower(part: unknown, path: readonly unknown[]): Record<string, unknown> | null {
    const given = fieldsOf(part);
    // Ends at the first part that exceeds the room. Otherwise weighing the other parts would take long.
    this.isFull ||= !takes(this.room, ownWeight(given, this.room.left));
    if (this.isFull) return null;
    const isRecursive = given.$ref !== undefined && path.includes(given.$ref);
    if (++this.parts > MAX_PARTS || path.length > MAX_LEVELS || isRecursive) return { type: 'object' };
    const { $ref, ...schema } = given;
    const below = [...path, $ref];
    if ($ref !== undefined) return this.lower({ ...resolved({ $ref }, this.root), ...schema }, below);
    const allOf = listOf(schema.allOf).map((one) => resolved(one, this.root));
    if (allOf.length > 0) {
      this.isFull ||= !allOf.every((one) => takes(this.room, ownWeight(one, this.room.left)));
      return this.isFull ? null : this.lower(joined(schema, allOf), below);
    }
    const said = Object.fromEntries(KEPT.flatMap((keyword) => (keyword in schema ? [[keyword, schema[keyword]]] : [])));
    const types = [...new Set([schema.type].flat())].filter(isType);
    const choices = choicesOf(schema, types);
    const canBeNull = choices.some(isNull) || types.includes('null') || schema.nullable === true;
    const nullable = canBeNull ? { nullable: true } : {};
    const others = choices.filter((choice) => !isNull(choice));
    if (others.length > 1) {
      const description = 'description' in said ? { description: said.description } : {};
      return { ...description, ...nullable, anyOf: this.lowerAll(others, below) };
    }
    if (others.length === 1) return { ...this.lower(others[0], below), ...said, ...nullable };
    const type = types.find((one) => one !== 'null') ?? impliedType(schema);
    return { ...said, ...nullable, type, ...this.detailsOf(type, schema, below) };
  }

  private lowerAll(parts: readonly unknown[], path: readonly unknown[]): Record<string, unknown>[] {
    const lowered = parts.map((part) => this.lower(part, path)).filter((one) => one !== null);
    return lowered.length > 0 ? lowered : [{ type: 'object' }];
  }

  private detailsOf(type: string, schema: Schema, path: readonly unknown[]): Schema {
    const { description } = schema;
    const format = FORMATS[type]?.includes(schema.format) === true ? { format: schema.format } : {};
    if (type === 'array') {
      const [first] = [...listOf(schema.items), ...listOf(schema.prefixItems)];
      const items = first ?? schema.items ?? { type: 'string' };
      return { items: this.lower(items, path) ?? { type: 'object' } };
    }
    if (type === 'object') {
      const properties = Object.entries(fieldsOf(schema.properties)).flatMap(([name, one]) => {
        const lowered = this.lower(one, path);
        return lowered === null ? [] : [[name, lowered] as const];
      });
      if (properties.length === 0) return {};
      const names = new Set<unknown>(properties.map(([name]) => name));
      const required = listOf(schema.required).filter((name) => names.has(name));
      return { properties: Object.fromEntries(properties), ...(required.length > 0 ? { required } : {}) };
    }
    const values = 'const' in schema ? [schema.const] : listOf(schema.enum).filter((value) => value !== null);
    if (values.length === 0) return format;
    // The subset has only enumerations of strings.
    if (type === 'string' && values.every((value) => typeof value === 'string')) return { enum: values };
    const list = `One of ${values.map((value) => JSON.stringify(value)).join(', ')}.`;
    return { ...format, description: typeof description === 'string' ? `${description} ${list}` : list };
  }
}

/** Returns the schemas of which a value must match one. A list of types is a choice, too. */
function choicesOf(schema: Schema, types: readonly string[]): unknown[] {
  const choices = [...listOf(schema.anyOf), ...listOf(schema.oneOf)];
  // Beside `properties`, a choice only says which of them go together.
  if (choices.length > 0 && !('properties' in schema)) return choices;
  const named = types.filter((type) => type !== 'null');
  return named.length > 1 ? named.map((type) => ({ ...schema, type, description: undefined })) : [];
}

/** Returns the weight of what lowering reads of a schema, without the schemas in it. At most that of the whole schema. */
function ownWeight(schema: Schema, most: number): number {
  const { $ref, properties, description, required, enum: values, const: value } = schema;
  const lists = [schema.type, schema.anyOf, schema.oneOf, schema.allOf, schema.items, schema.prefixItems];
  const names = Object.keys(schema).length + Object.keys(fieldsOf(properties)).length;
  const read = [$ref, description, required, values, value].filter((one) => one !== undefined);
  return 1 + names + sum(lists.map((list) => listOf(list).length)) + sum(read.map((one) => jsonWeight(one, most)));
}

/** Returns the schema combined with the requirements of the others. Earlier schemas take precedence. */
function joined({ allOf: _, ...schema }: Schema, others: readonly Schema[]): Schema {
  const all = [schema, ...others];
  const lastFirst = all.toReversed();
  return {
    ...assigned(lastFirst),
    properties: assigned(lastFirst.map(({ properties }) => fieldsOf(properties))),
    required: [...new Set(all.flatMap(({ required }) => listOf(required)))],
  };
}

/** Returns the fields of all, the last of each name. Unlike `Object.assign`, it keeps a field `__proto__`. */
const assigned = (all: readonly Schema[]): Schema => Object.fromEntries(all.flatMap((one) => Object.entries(one)));

function impliedType(schema: Schema): string {
  if ('properties' in schema) return 'object';
  if ('items' in schema) return 'array';
  const [value] = 'const' in schema ? [schema.const] : listOf(schema.enum);
  return typeof value === 'number' || typeof value === 'boolean' ? typeof value : 'string';
}

/** Resolves a reference within the schema. Returns an empty schema if its target is missing. */
function resolved(part: unknown, root: Schema): Schema {
  const { $ref } = fieldsOf(part);
  if (typeof $ref !== 'string') return fieldsOf(part);
  const path = $ref
    .replace(/^#\/?/, '')
    .split('/')
    .filter((step) => step !== '');
  const target = path.reduce<unknown>(
    (at, step) => fieldsOf(at)[step.replaceAll('~1', '/').replaceAll('~0', '~')],
    root,
  );
  return fieldsOf(target);
}

const TYPES: readonly unknown[] = ['array', 'boolean', 'integer', 'null', 'number', 'object', 'string'];
const isType = (type: unknown): type is string => TYPES.includes(type);
const sum = (numbers: readonly number[]): number => numbers.reduce((all, one) => all + one, 0);
const isNull = (schema: unknown): boolean => fieldsOf(schema).type === 'null';
const fieldsOf = (value: unknown): Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
