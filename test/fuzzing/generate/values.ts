import fc from 'fast-check';
import { follow, type ApiDocument, type Schema } from './document.ts';
import { refusedText, storableText, strangerUlid, WRONG_BASE64, WRONG_ULIDS } from './strings.ts';

/** Stands for the id of something that exists once the request is sent (world.ts). */
export interface Pick {
  $pick: string;
  n: number;
  lower: boolean;
}

/** Stands for JSON text that no value is written as: `1e400`, `-0`. */
export interface RawJson {
  $raw: string;
}

export interface WrongValue {
  value: unknown;
  /** What is wrong with it. */
  why: string;
}

export const pickOf = (name: string): fc.Arbitrary<Pick> =>
  fc.tuple(fc.nat(100_000), fc.nat(9)).map(([n, tenth]) => ({ $pick: name, n, lower: tenth === 0 }));

/** What an echo agent does something on; any text will do for others. */
const HINTS: Record<string, string[]> = {
  text: ['/confirm', '/confirm 3', '/tool', '/artifact', '/cite', '/fail', '/think 5ms', '/pieces 50', '/flaky'],
};

/** Deeper than any record is; a schema that refers to itself ends there. */
const DEEPEST = 8;
/** Lists are filled to their bound with equal items; longer than that it is the body's size that would be tried. */
const LONGEST_LIST = 1_100;

/** Values by the schemas of one document. */
export class Values {
  constructor(private readonly document: ApiDocument) {}

  /** A value that the schema allows; `name` is that of the property or parameter. */
  valid(schemaOrRef: Schema, name: string, depth = 0): fc.Arbitrary<unknown> {
    const schema = follow<Schema>(this.document, schemaOrRef);
    const branches = branchesOf(schema);
    if (branches) return fc.oneof(...branches.map((branch) => this.valid(branch, name, depth)));
    if ('const' in schema) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    switch (schema.type) {
      case 'string':
        return validString(schema, name);
      case 'integer':
      case 'number':
        return validNumber(schema);
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'array':
        return this.validArray(schema, name, depth);
      case 'object':
        return this.validObject(schema, depth);
      default:
        return fc.constantFrom<unknown>(null, true, 1, 'text', [], {});
    }
  }

  /** A value with one thing wrong; null where the schema allows everything. */
  wrong(schemaOrRef: Schema, name: string, depth = 0): fc.Arbitrary<WrongValue> | null {
    const schema = follow<Schema>(this.document, schemaOrRef);
    const branches = branchesOf(schema);
    if (branches) return this.wrongForAll(branches, name, depth);
    const options = [wrongType(schema), this.wrongWithin(schema, name, depth)];
    const some = oneOfSome(options);
    return some && some.map(({ value, why }) => ({ value, why: why.startsWith('.') ? why : `: ${why}` }));
  }

  /** A value that is wrong for one branch of a union. Omits values of a type that another branch allows, like null for a string. */
  private wrongForAll(branches: Schema[], name: string, depth: number): fc.Arbitrary<WrongValue> | null {
    const types = branches.map((branch) => scalarTypeOf(follow<Schema>(this.document, branch)));
    return oneOfSome(
      branches.map((branch, i) => {
        const others = types.filter((type, j) => j !== i && type !== null);
        const wrong = this.wrong(branch, name, depth);
        return wrong && wrong.filter(({ value }) => !others.some((type) => isOfType(value, type)));
      }),
    );
  }

  private wrongWithin(schema: Schema, name: string, depth: number): fc.Arbitrary<WrongValue> | null {
    if ('const' in schema || schema.enum) return wrongConstant(schema);
    switch (schema.type) {
      case 'string':
        return wrongString(schema);
      case 'integer':
      case 'number':
        return wrongNumber(schema);
      case 'array':
        return this.wrongArray(schema, name, depth);
      case 'object':
        return this.wrongObject(schema, name, depth);
      default:
        return null;
    }
  }

  private validArray({ items = {}, minItems = 0, maxItems = LONGEST_LIST }: Schema, name: string, depth: number) {
    const item = this.valid(items, name, depth + 1);
    const few = Math.max(minItems, Math.min(3, maxItems));
    const filled = fc.tuple(item, fc.constantFrom(maxItems, Math.max(minItems, maxItems - 1)));
    return fc.oneof(
      { weight: 9, arbitrary: fc.array(item, { minLength: minItems, maxLength: Math.max(minItems, 1) }) },
      { weight: 3, arbitrary: fc.array(item, { minLength: minItems, maxLength: few }) },
      ...(maxItems <= LONGEST_LIST
        ? [{ weight: 1, arbitrary: filled.map(([one, count]) => Array.from({ length: count }, () => one)) }]
        : []),
    );
  }

  private validObject({ properties = {}, required = [] }: Schema, depth: number): fc.Arbitrary<object> {
    const entries = Object.entries(properties).filter(([name]) => required.includes(name) || depth < DEEPEST);
    return fc
      .tuple(...entries.map(([name, schema]) => this.validProperty(name, schema, required, depth)))
      .map((all) => {
        const present = entries.map(([name], i) => [name, all[i]] as const).filter(([, value]) => value !== undefined);
        return Object.fromEntries(present);
      });
  }

  private validProperty(name: string, schema: Schema, required: string[], depth: number): fc.Arbitrary<unknown> {
    const value = this.valid(schema, name, depth + 1);
    if (required.includes(name)) return value;
    return fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 2, arbitrary: value });
  }

  private wrongArray(schema: Schema, name: string, depth: number): fc.Arbitrary<WrongValue> | null {
    const { items = {}, minItems = 0, maxItems = Infinity } = schema;
    const item = this.valid(items, name, depth + 1);
    const wrongItem = this.wrong(items, name, depth + 1);
    const filled = (count: number, why: string) =>
      item.map((one) => ({ value: Array.from({ length: count }, () => one), why }));
    return oneOfSome([
      minItems > 0 ? filled(minItems - 1, 'one item too few') : null,
      maxItems <= LONGEST_LIST ? filled(maxItems + 1, 'one item too many') : null,
      wrongItem &&
        fc
          .tuple(wrongItem, fc.array(item, { maxLength: 2 }))
          .map(([{ value, why }, others]) => ({ value: [...others, value], why: `.${others.length}${why}` })),
    ]);
  }

  private wrongObject(schema: Schema, name: string, depth: number): fc.Arbitrary<WrongValue> | null {
    const { properties = {}, required = [], additionalProperties } = schema;
    const valid = this.valid(schema, name, depth) as fc.Arbitrary<Record<string, unknown>>;
    const broken = Object.entries(properties).map(([property, propertySchema]) => {
      const wrong = depth < DEEPEST ? this.wrong(propertySchema, property, depth + 1) : null;
      return (
        wrong &&
        fc
          .tuple(valid, wrong)
          .map(([rest, { value, why }]) => ({ value: { ...rest, [property]: value }, why: `.${property}${why}` }))
      );
    });
    const missing = required.map((property) =>
      valid.map(({ [property]: _, ...rest }) => ({ value: rest, why: `.${property}: missing` })),
    );
    return oneOfSome([...broken, ...missing, additionalProperties === false ? withExtraField(valid) : null]);
  }
}

/** Names that JavaScript objects have already; they must be refused like every other unknown one. */
const EXTRA_FIELDS = [
  'extra',
  '__proto__',
  'constructor',
  'prototype',
  'toString',
  'hasOwnProperty',
  '',
  '\0',
  '😀',
  'then',
  'attributed_user_id',
  'client_external_ref',
];

function withExtraField(valid: fc.Arbitrary<Record<string, unknown>>): fc.Arbitrary<WrongValue> {
  const extra = fc.constantFrom<unknown>('x', null, 1, {}, { $raw: '{"isAdmin":true}' } satisfies RawJson);
  return fc.tuple(valid, fc.constantFrom(...EXTRA_FIELDS), extra).map(([rest, field, value]) => ({
    // By entries, as the only way to own a `__proto__`.
    value: Object.fromEntries([...Object.entries(rest), [field, value]]),
    why: `.${field}: unknown field`,
  }));
}

/** The type of a schema that allows many strings, numbers, booleans or null; null for any other schema. */
function scalarTypeOf(schema: Schema): string | null {
  const { type } = schema;
  if (typeof type !== 'string' || 'const' in schema || schema.enum) return null;
  return type === 'object' || type === 'array' ? null : type;
}

function isOfType(value: unknown, type: string | null): boolean {
  if (type === 'null') return value === null;
  return typeof value === (type === 'integer' ? 'number' : type);
}

function branchesOf(schema: Schema): Schema[] | null {
  if (Array.isArray(schema.type)) return schema.type.map((type) => ({ ...schema, type }));
  return schema.anyOf ?? schema.oneOf ?? null;
}

export const isUlid = ({ format, pattern }: Schema): boolean =>
  format === 'ulid' || pattern?.startsWith('^[0-7][0-9A-H') === true;
const isBase64 = ({ format, contentEncoding }: Schema): boolean =>
  contentEncoding === 'base64' || format === 'base64' || format === 'byte';

function validString(schema: Schema, name: string): fc.Arbitrary<unknown> {
  if (isUlid(schema)) {
    return fc.oneof({ weight: 12, arbitrary: pickOf(name) }, { weight: 1, arbitrary: strangerUlid });
  }
  if (isBase64(schema)) return fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes).toString('base64'));
  if (schema.format === 'date-time') return fc.nat().map((ms) => new Date(ms).toISOString());
  if (schema.pattern !== undefined) return fc.stringMatching(new RegExp(schema.pattern, 'u'));
  // Nobody can make one up.
  if (name === 'cursor') return pickOf(name);
  const text = storableText(schema, HINTS[name]);
  return name === 'requestId' ? fc.oneof<fc.Arbitrary<unknown>[]>(pickOf(name), text) : text;
}

function validNumber({ type, minimum = -1_000, maximum = 1_000 }: Schema): fc.Arbitrary<unknown> {
  const bounds = fc.constantFrom<unknown>(minimum, maximum, { $raw: `${minimum}.0` } satisfies RawJson);
  return fc.oneof(
    bounds,
    type === 'integer'
      ? fc.integer({ min: minimum, max: maximum })
      : fc.double({ min: minimum, max: maximum, noNaN: true }),
  );
}

const SAMPLES: Record<string, unknown> = {
  string: 'text',
  integer: 1,
  number: 1.5,
  boolean: true,
  null: null,
  array: [],
  object: {},
};

function wrongType({ type }: Schema): fc.Arbitrary<WrongValue> | null {
  if (typeof type !== 'string') return null;
  const others = Object.entries(SAMPLES).filter(
    ([other]) => other !== type && !(type === 'number' && other === 'integer'),
  );
  return fc.constantFrom(...others).map(([other, value]) => ({ value, why: `${other} for ${type}` }));
}

function wrongConstant({ const: constant, enum: values = [constant] }: Schema): fc.Arbitrary<WrongValue> {
  const variants = values.flatMap((value) => [
    String(value).toUpperCase(),
    ` ${String(value)}`,
    `${String(value)}\0`,
    [value],
  ]);
  const wrong = [...variants, 'other', ''].filter((value) => !values.includes(value));
  return fc.constantFrom(...wrong).map((value) => ({ value, why: 'not one of the values' }));
}

function wrongString(schema: Schema): fc.Arbitrary<WrongValue> {
  if (isUlid(schema)) return fc.constantFrom(...WRONG_ULIDS).map((value) => ({ value, why: 'no ULID' }));
  if (isBase64(schema)) return fc.constantFrom(...WRONG_BASE64).map((value) => ({ value, why: 'no base64' }));
  return refusedText(schema).map((value) => ({ value, why: 'too short, too long or unstorable' }));
}

function wrongNumber({ type, minimum, maximum }: Schema): fc.Arbitrary<WrongValue> {
  const values: unknown[] = [
    '1',
    { $raw: '1e400' },
    { $raw: '-1e400' },
    1e21,
    -1e21,
    Number.MAX_SAFE_INTEGER + 1,
    { $raw: '1e-400' },
  ];
  if (type === 'integer') values.push(1.5, { $raw: '1.0000000001' });
  if (minimum !== undefined) values.push(minimum - 1, -minimum - 1);
  if (maximum !== undefined) values.push(maximum + 1);
  return fc.constantFrom(...values).map((value) => ({ value, why: 'out of range or no number' }));
}

function oneOfSome<T>(options: (fc.Arbitrary<T> | null)[]): fc.Arbitrary<T> | null {
  const some = options.filter((option) => option !== null);
  return some.length === 0 ? null : fc.oneof(...some);
}
