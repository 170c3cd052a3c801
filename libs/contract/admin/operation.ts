import type { z } from 'zod';

/** One operation of the admin API: what is checked before it is done, and what the OpenAPI document says. */
export interface AdminOperation<
  Params extends z.ZodObject = z.ZodObject,
  Query extends z.ZodObject = z.ZodObject,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  method: 'GET' | 'POST' | 'DELETE';
  /** Below /admin/v1, parameters in braces. */
  path: `/${string}`;
  summary: string;
  description: string;
  params: Params;
  query: Query;
  /** Null where no body is taken. */
  body: Body | null;
  status: 200 | 201;
  answer: Answer;
  /** `lines`: the answer is many of them, one a line (NDJSON), sent as they come. `bytes`: it is a file's content. */
  form: 'json' | 'lines' | 'bytes';
}

/** The parsed input of an operation. */
export interface AdminInput<O extends AdminOperation> {
  params: z.output<O['params']>;
  query: z.output<O['query']>;
  body: O extends AdminOperation<z.ZodObject, z.ZodObject, infer Body> ? z.output<Body> : never;
}

/** The input that a caller of an operation passes. Fields with a default may be omitted. */
export interface AdminCall<O extends AdminOperation> {
  params?: z.input<O['params']>;
  query?: z.input<O['query']>;
  body?: O extends AdminOperation<z.ZodObject, z.ZodObject, infer Body> ? z.input<Body> : never;
}

/** The answer, or one line of it. */
export type AdminAnswer<O extends AdminOperation> = z.output<O['answer']>;
