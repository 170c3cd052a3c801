import type { z } from 'zod';
import type { Verb } from './browser-tokens.ts';

/** One operation of the interface: what the API checks before it does anything, and what the OpenAPI document says. */
export interface Operation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below {base_url}, parameters in braces. */
  path: `/${string}`;
  summary: string;
  description: string;
  params: Params;
  query: Query;
  /** Null if the operation takes no body; `upload` is one part named `file` of multipart/form-data. */
  body: Body | 'upload' | null;
  /** Instead of `body` where the older fields are taken too (`COMPATIBILITY_FIELDS=on`). */
  compatibleBody?: z.ZodType;
  takesIdempotencyKey?: true;
  /** The verb that a browser token needs. `by_event`: each event of the batch has one. Null: no browser token can use it. */
  verb: Verb | 'by_event' | null;
  /** Whether it takes `If-Match` with the ETag of a file. */
  takesIfMatch?: true;
  status: 200 | 201;
  answer: z.ZodType | 'event_stream' | 'bytes';
}

/** The parsed input of an operation. */
export interface InputOf<O extends Operation> {
  params: z.output<O['params']>;
  query: z.output<O['query']>;
  body: O extends { compatibleBody: infer Body extends z.ZodType }
    ? z.output<Body>
    : O extends Operation<z.ZodObject, z.ZodObject, infer Body>
      ? z.output<Body>
      : never;
  idempotencyKey: string | null;
  /** Whether the answer carries the optional fields beyond the contract (`?extended=true`). */
  extended: boolean;
}
