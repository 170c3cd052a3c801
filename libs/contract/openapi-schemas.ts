import type { z } from 'zod';

/** The form of schemas in the OpenAPI documents of both interfaces. */
export type Json = Record<string, unknown>;

/** Bytes of a file. OpenAPI 3.1 reads the media type; generators of clients read `format`. */
export const BYTES = { type: 'string', format: 'binary', contentMediaType: 'application/octet-stream' } as const;

/** Removes the bounds that zod gives to every integer, because they are only those of JavaScript. */
export function tidy({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
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
