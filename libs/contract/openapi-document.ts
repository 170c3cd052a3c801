import { z } from 'zod';

export type Json = Record<string, unknown>;

/** Bytes of a file. OpenAPI 3.1 reads the media type; generators of clients read `format`. */
export const BYTES = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' } as const;

type Operations = Record<string, { method: string; path: string; summary: string; description: string }>;

/** Returns all operations by path and method. `describe` returns the fields that both interfaces do not share. */
export function describePaths<All extends Operations>(
  operations: All,
  tagOf: (path: string) => string,
  describe: (operation: All[string], name: string) => Json,
): Record<string, Json> {
  const paths: Record<string, Json> = {};
  for (const [name, operation] of Object.entries(operations) as [string, All[string]][]) {
    const { method, path, summary, description } = operation;
    const described = { operationId: name, summary, description, tags: [tagOf(path)], ...describe(operation, name) };
    (paths[path] ??= {})[method.toLowerCase()] = described;
  }
  return paths;
}

/** Which side of a schema that transforms its input. */
type Form = 'input' | 'output';

/** Writes schemas as JSON Schema. Named schemas are written once, in the components; others refer to them. */
export class SchemaWriter {
  constructor(
    private readonly components: z.core.$ZodRegistry<{ id: string }>,
    private readonly formOfParameters: Form = 'output',
  ) {}

  describeComponents(): Json {
    const { schemas } = z.toJSONSchema(this.components, { uri: refTo, override: tidy });
    const described = Object.entries(schemas).map(([id, { $schema: _, $id: __, ...schema }]) => [id, schema]);
    return Object.fromEntries(described) as Json;
  }

  describe(schema: z.core.$ZodType, io: Form = 'output'): Json {
    const override = (made: Made): void => {
      const id = this.components.get(made.zodSchema)?.id;
      if (id === undefined) return tidy(made);
      for (const keyword of Object.keys(made.jsonSchema)) delete made.jsonSchema[keyword];
      made.jsonSchema.$ref = refTo(id);
    };
    const { $schema: _, ...json } = z.toJSONSchema(schema, { io, override });
    return json;
  }

  describeParameters(fields: Record<string, z.core.$ZodType>, place: 'path' | 'query' | 'header'): Json[] {
    return Object.entries(fields).map(([name, field]) => {
      const { description, ...schema } = this.describe(field, this.formOfParameters);
      // The values of a list are separated by commas.
      const list = place === 'query' && schema['type'] === 'array' ? { style: 'form', explode: false } : {};
      return { name, in: place, required: place === 'path', ...(description ? { description } : {}), ...list, schema };
    });
  }
}

interface Made {
  zodSchema: z.core.$ZodType;
  jsonSchema: z.core.JSONSchema.BaseSchema;
}

export const refTo = (id: string): string => `#/components/schemas/${id}`;

/** Removes the bounds that zod gives to every integer, because they are only those of JavaScript. */
function tidy({ jsonSchema }: Made): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
}

/**
 * Returns the document with answers open to fields that later releases add (docs/api/README.md, "Conventions"). Request
 * bodies stay closed: the service refuses unknown fields. The schemas of the code stay strict, so that no answer gets a
 * field by mistake.
 */
export function openAnswers<Document extends { paths: Json; components: { schemas: Json } }>(document: Document): Json {
  const { paths, components } = document;
  const requests = namesOfRequests(paths, components.schemas);
  const schemas = Object.entries(components.schemas).map(([id, schema]) => [
    id,
    requests.has(id) ? schema : open(schema),
  ]);
  return {
    ...document,
    paths: open(paths),
    components: { ...components, schemas: Object.fromEntries(schemas) as Json },
  };
}

/** Copies a part of the document. Everything below `requestBody` stays closed. */
function open(part: unknown): unknown {
  if (Array.isArray(part)) return part.map(open);
  if (typeof part !== 'object' || part === null) return part;
  const kept = Object.entries(part).filter(([key, value]) => key !== 'additionalProperties' || value !== false);
  return Object.fromEntries(kept.map(([key, value]) => [key, key === 'requestBody' ? value : open(value)]));
}

/** Returns the names of all schemas that a request body refers to, directly or through others. */
function namesOfRequests(paths: Json, schemas: Json): Set<string> {
  const bodies = Object.values(paths).flatMap((item) =>
    Object.values(item as Record<string, { requestBody?: unknown }>).map(({ requestBody }) => requestBody),
  );
  const names = new Set(refsIn(bodies));
  // Iterating a set also yields the members that are added meanwhile.
  for (const name of names) for (const below of refsIn(schemas[name])) names.add(below);
  return names;
}

function refsIn(part: unknown): string[] {
  const refs = (JSON.stringify(part) ?? '').matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g);
  return [...refs].map(([, name]) => name!);
}
