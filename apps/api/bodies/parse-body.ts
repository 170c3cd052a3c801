import { isUtf8 } from 'node:buffer';
import { join } from 'node:path';
import { BOUNDS } from '#domain';
import { ownTurn } from '#platform';
import { TaskFailed, type RunTask, type Task } from '#task-pool';
import { ApiError, bodiesFull } from '../http/http-errors.ts';

/** Bodies over SMALL_BYTES are parsed one per turn of the event loop. Those over LARGE_BYTES are parsed in the task pool. */
const SMALL_BYTES = BOUNDS.requests.parsedTogether.value;
export const LARGE_BYTES = BOUNDS.requests.parsedHere.value;

const PARSE_JSON: Task<null, { parsed: unknown } | null> = {
  name: 'parse-json',
  module: join(import.meta.dirname, 'parse-json-worker.mjs'),
  limits: { cpuMs: BOUNDS.requests.parseCpu.value, wallMs: BOUNDS.requests.parseTime.value },
};

/** A body that is not parsed yet. Its bytes are taken out before parsing, so that they are not kept meanwhile. */
export interface ReceivedBody {
  bytes: Buffer<ArrayBuffer>;
}

const NOTHING = Buffer.alloc(0);

/** Parses JSON in UTF-8; returns undefined for an empty body. Takes the bytes out of the body. Throws ApiError. */
export async function parseBody(body: ReceivedBody, runTask: RunTask): Promise<unknown> {
  const { length } = body.bytes;
  if (length === 0) return undefined;
  if (length > LARGE_BYTES) return parseInTaskPool(body, runTask);
  // Bodies that arrive together must not add up to one long pause.
  if (length > SMALL_BYTES) await ownTurn();
  try {
    // Decoding would silently replace bytes that are not UTF-8.
    if (!isUtf8(body.bytes)) throw new SyntaxError('not UTF-8');
    return JSON.parse(body.bytes.toString());
  } catch {
    throw notJson();
  }
}

async function parseInTaskPool(body: ReceivedBody, runTask: RunTask): Promise<unknown> {
  const take = async () => {
    const { bytes } = body;
    body.bytes = NOTHING;
    return { value: null, bytes };
  };
  const { value } = await runTask(PARSE_JSON, take).catch(refuseFailed);
  if (value === null) throw notJson();
  // Checking the fields takes as long as parsing, so it gets a separate turn.
  await ownTurn();
  return value.parsed;
}

function refuseFailed(error: unknown): never {
  if (!(error instanceof TaskFailed)) throw error;
  throw error.isOverLimit ? new ApiError('invalid_field', 'body: is too complex') : bodiesFull();
}

const notJson = () => new ApiError('invalid_json', 'The body is not JSON in UTF-8.');
