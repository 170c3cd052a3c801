import { BOUNDS } from '#domain';
import { isMap, type JsonMap } from './message.ts';
import { BadSchema, readSchema, showName, type InputSchema } from './read-schema.ts';

const MAX_NAME = BOUNDS.toolServers.name.value;

/** A tool in a server's list, with the fields that Spool uses. */
export interface ListedTool {
  name: string;
  title?: string;
  description?: string;
  annotations?: { title?: string; readOnlyHint?: boolean; idempotentHint?: boolean; destructiveHint?: boolean };
  inputSchema: InputSchema;
}

/**
 * Reads one tool of a server's list. Treats null, and an optional field of a wrong type, as absent. Returns the reason as text
 * if the tool cannot be used.
 */
export function readTool(given: unknown, index: number): ListedTool | string {
  const { name, title, description, annotations, inputSchema } = isMap(given) ? given : ({} as JsonMap);
  if (typeof name !== 'string' || name === '') return `Entry ${index + 1} of the list has no name.`;
  if (name.length > MAX_NAME) return `The name ${showName(name)} has more than ${MAX_NAME} characters.`;
  const schema = trySchema(inputSchema);
  if (typeof schema === 'string') return `The input schema of ${showName(name)} ${schema}.`;
  return {
    name,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(isMap(annotations) && { annotations: readAnnotations(annotations) }),
    inputSchema: schema,
  };
}

function readAnnotations({
  title,
  readOnlyHint,
  idempotentHint,
  destructiveHint,
}: JsonMap): NonNullable<ListedTool['annotations']> {
  return {
    ...(typeof title === 'string' && { title }),
    ...(typeof readOnlyHint === 'boolean' && { readOnlyHint }),
    ...(typeof idempotentHint === 'boolean' && { idempotentHint }),
    ...(typeof destructiveHint === 'boolean' && { destructiveHint }),
  };
}

/** Returns what is wrong with it as text. */
function trySchema(given: unknown): InputSchema | string {
  try {
    return readSchema(given);
  } catch (error) {
    if (error instanceof BadSchema) return error.message;
    throw error;
  }
}
