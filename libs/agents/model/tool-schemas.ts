import { BOUNDS } from '#domain';

/** A JSON Schema or a part of one. It may have any shape. */
type Schema = Readonly<Record<string, unknown>>;

/** Keywords that OpenAI and Anthropic refuse beside `type: object` at the root of a schema. */
const REFUSED_AT_ROOT = ['anyOf', 'oneOf', 'allOf', 'not', 'enum', '$ref'];
const MAX_PARTS = BOUNDS.transcripts.schemaParts.value;
const MAX_LEVELS = BOUNDS.transcripts.schemaLevels.value;

/**
 * Returns the schema of a tool's input in the form that every server accepts: `type: object` with `properties`, and no choice
 * between schemas at the root. The engine still checks each input against the tool's own schema.
 *
 * Nested objects may lack `properties`: no server refuses that, and for llama.cpp `properties: {}` means an object without any.
 */
export function toInputSchema(schema: Schema): Record<string, unknown> {
  const rest = Object.fromEntries(Object.entries(schema).filter(([keyword]) => !REFUSED_AT_ROOT.includes(keyword)));
  const choices = ['anyOf', 'oneOf', 'allOf'].flatMap((keyword) => listOf(schema[keyword]));
  if ('$ref' in schema) choices.push({ $ref: schema.$ref });
  const properties = choices.reduce<Record<string, unknown>>(
    (all, choice) => merged(all, fieldsOf(resolved(choice, schema).properties)),
    {},
  );
  return { ...rest, type: 'object', properties: { ...properties, ...fieldsOf(schema.properties) } };
}

/** Merges the properties of two choices. A property with two different schemas may match either. */
function merged(all: Schema, more: Schema): Record<string, unknown> {
  const both = { ...all };
  for (const [name, schema] of Object.entries(more)) {
    const known = both[name];
    const isNew = known === undefined || JSON.stringify(known) === JSON.stringify(schema);
    both[name] = isNew
      ? schema
      : { anyOf: [...listOf(fieldsOf(known).anyOf), ...(fieldsOf(known).anyOf ? [] : [known]), schema] };
  }
  return both;
}

/**
 * Returns the schema in the subset of OpenAPI 3.0 that Gemini accepts; null for an object without properties, which it refuses.
 * Resolves references, and leaves out what the subset cannot express.
 */
export function toOpenApiSchema(schema: Schema): Record<string, unknown> | null {
  const lowered = new Lowering(schema).lower(schema, []);
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

  constructor(private readonly root: Schema) {}

  /** `path` has the reference of each level above, undefined for a level without one. */
  lower(part: unknown, path: readonly unknown[]): Record<string, unknown> {
    const { $ref, ...schema } = fieldsOf(part);
    const isRecursive = $ref !== undefined && path.includes($ref);
    if (++this.parts > MAX_PARTS || path.length > MAX_LEVELS || isRecursive) return { type: 'object' };
    const below = [...path, $ref];
    if ($ref !== undefined) return this.lower({ ...resolved({ $ref }, this.root), ...schema }, below);
    const allOf = listOf(schema.allOf).map((one) => resolved(one, this.root));
    if (allOf.length > 0) return this.lower(joined(schema, allOf), below);
    const said = Object.fromEntries(KEPT.flatMap((keyword) => (keyword in schema ? [[keyword, schema[keyword]]] : [])));
    const types = [schema.type].flat().filter((type) => typeof type === 'string');
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
      const names = properties.map(([name]) => name);
      const required = listOf(schema.required).filter((name) => names.includes(name as string));
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

/** Returns the schema combined with the requirements of the others. */
function joined({ allOf: _, ...schema }: Schema, others: readonly Schema[]): Schema {
  return [schema, ...others].reduce((all, one) => ({
    ...one,
    ...all,
    properties: { ...fieldsOf(one.properties), ...fieldsOf(all.properties) },
    required: [...new Set([...listOf(all.required), ...listOf(one.required)])],
  }));
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
