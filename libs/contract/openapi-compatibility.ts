import { eventResult } from './answers.ts';
import { COMPATIBILITY_FIELDS, type CompatibleThread } from './compatibility.ts';
import { schemas as writer } from './openapi-answers.ts';
import type { Json } from './openapi-document.ts';
import { threadSummary } from './records.ts';

/** Adds the older fields, which the installation also accepts and returns, to the schemas and examples of the document. */
export function addCompatibilityFields<Document extends { paths: Json; components: { schemas: Json } }>(
  document: Document,
): Document {
  const { paths, components } = document;
  const { schemas } = components;
  const more = Object.entries(COMPATIBILITY_FIELDS).map(([id, fields]) => [
    id,
    join(schemas[id] as Json, writer.describe(fields)),
  ]);
  const all = { ...schemas, ...(Object.fromEntries(more) as Json) };
  return { ...document, paths: addToExamples(paths), components: { ...components, schemas: all } };
}

function join(schema: Json, { properties, required = [] }: Json): Json {
  return {
    ...schema,
    properties: { ...(schema['properties'] as Json), ...(properties as Json) },
    required: [...(schema['required'] as string[]), ...(required as string[])],
  };
}

/** The fields of a Thread that a service token made for a person. */
const THREAD: CompatibleThread = {
  client_external_ref: 'ticket-1042',
  attributed_user: { id: '01KAJ0S3PAR5T7V9X1Z3B5D7F9' },
  created_by: { id: '01KAJ0SVC0T2V4X6Z8B0D2F4H6' },
};

/** Wherever a Thread, or the result of an event, stands in it. */
function addToExamples(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(addToExamples);
  if (typeof value !== 'object' || value === null) return value;
  if (threadSummary.safeParse(value).success) return { ...value, ...THREAD };
  const fields = Object.fromEntries(Object.entries(value).map(([name, field]) => [name, addToExamples(field)]));
  const result = eventResult.safeParse(value);
  return result.success ? { ...fields, clientRequestId: result.data.requestId } : fields;
}
