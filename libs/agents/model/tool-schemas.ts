import { BOUNDS } from '#domain';
import { jsonWeight } from '../json-weight.ts';

/** A JSON Schema or a part of one. It may have any shape. */
type Schema = Readonly<Record<string, unknown>>;

/** Keywords that OpenAI and Anthropic refuse beside `type: object` at the root of a schema. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];
const MAX_WEIGHT = BOUNDS.transcripts.schemaWeight.value;
const MAX_PARTS = BOUNDS.transcripts.schemaParts.value;
const MAX_LEVELS = BOUNDS.transcripts.schemaLevels.value;

/** The weight (`json-weight.ts`) that is left for references and choices in the schemas of one request. */
export interface SchemaRoom {
  left: number;
}

export const newRoom = (): SchemaRoom => ({ left: MAX_WEIGHT });

/** Subtracts the weight of a value from the room. Returns false if too little was left. */
function takes(room: SchemaRoom, value: unknown): boolean {
  room.left -= jsonWeight(value, room.left);
  return room.left >= 0;
}

/**
 * Returns the schema of a tool's input in the form that every server accepts: `type: object` with `properties`, and no choice
 * between schemas at the root. The engine still checks each input against the tool's own schema.
 *
 * Leaves out what exceeds the room. Nested objects may lack `properties`: no server refuses that, and for llama.cpp
 * `properties: {}` means an object without any.
 */
export function toInputSchema(schema: Schema, room: SchemaRoom = newRoom()): Record<string, unknown> {
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
  for (const choice of choices) {
    if (room.left < 0) break;
    for (const [name, schema] of Object.entries(choice)) {
      if (!takes(room, schema)) break;
      const known = found.get(name) ?? new Map<string, unknown>();
      found.set(name, known.set(JSON.stringify(schema), schema));
    }
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
  const lowered = new Lowering(schema, room).lower(schema, []);
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

  constructor(
    private readonly root: Schema,
    private readonly room: SchemaRoom,
  ) {}

  /** `path` has the reference of each level above, undefined for a level without one. */
  lower(part: unknown, path: readonly unknown[]): Record<string, unknown> {
    const { $ref, ...schema } = fieldsOf(part);
    const isRecursive = $ref !== undefined && path.includes($ref);
    if (++this.parts > MAX_PARTS || path.length > MAX_LEVELS || isRecursive) return { type: 'object' };
    if (!takes(this.room, [$ref, ownParts(schema)])) return { type: 'object' };
    const below = [...path, $ref];
    if ($ref !== undefined) return this.lower({ ...resolved({ $ref }, this.root), ...schema }, below);
    const allOf = listOf(schema.allOf).map((one) => resolved(one, this.root));
    if (allOf.length > 0) {
      const isTaken = allOf.every((one) => takes(this.room, ownParts(one)));
      return isTaken ? this.lower(joined(schema, allOf), below) : { type: 'object' };
    }
    const said = Object.fromEntries(KEPT.flatMap((keyword) => (keyword in schema ? [[keyword, schema[keyword]]] : [])));
    const types = [...new Set([schema.type].flat())].filter((type) => typeof type === 'string');
    const choices = choicesOf(schema, types);
    const canBeNull = choices.some(isNull) || types.includes('null') || schema.nullable === true;
    const nullable = canBeNull ? { nullable: true } : {};
    const others = choices.filter((choice) => !isNull(choice));
    if (others.length > 1) {
      const description = 'description' in said ? { description: said.description } : {};
      return { ...description, ...nullable, anyOf: others.map((choice) => this.lower(choice, below)) };
    }
    if (others.length === 1) return { ...this.lower(others[0], below), ...said, ...nullable };
    const type = types.find((one) => one !== 'null') ?? impliedType(schema);
    return { ...said, ...nullable, type, ...this.detailsOf(type, schema, below) };
  }

  private detailsOf(type: string, schema: Schema, path: readonly unknown[]): Schema {
    const { description } = schema;
    const format = FORMATS[type]?.includes(schema.format) === true ? { format: schema.format } : {};
    if (type === 'array') {
      const [first] = [...listOf(schema.items), ...listOf(schema.prefixItems)];
      const items = first ?? schema.items ?? { type: 'string' };
      return { items: this.lower(items, path) };
    }
    if (type === 'object') {
      const properties = Object.entries(fieldsOf(schema.properties)).map(([name, one]) => [
        name,
        this.lower(one, path),
      ]);
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

/** Returns the parts of a schema that lowering reads, without nested schemas. */
function ownParts(schema: Schema): unknown[] {
  const { properties, description, required, enum: values, const: value } = schema;
  return [Object.keys(schema), Object.keys(fieldsOf(properties)), description, required, values, value];
}

/** Returns the schema combined with the requirements of the others. Earlier schemas take precedence. */
function joined({ allOf: _, ...schema }: Schema, others: readonly Schema[]): Schema {
  const all = [schema, ...others];
  const lastFirst = all.toReversed();
  return {
    ...(Object.assign({}, ...lastFirst) as Schema),
    properties: Object.assign({}, ...lastFirst.map(({ properties }) => fieldsOf(properties))) as Schema,
    required: [...new Set(all.flatMap(({ required }) => listOf(required)))],
  };
}

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

const isNull = (schema: unknown): boolean => fieldsOf(schema).type === 'null';
const fieldsOf = (value: unknown): Schema =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Schema) : {};
const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
