import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { closeSchemas } from '#testing';

export type Method = 'GET' | 'HEAD' | 'POST' | 'DELETE' | 'PUT' | 'PATCH';

/** What of an OpenAPI 3.1 document is looked at here. */
export interface OpenApi {
  openapi: string;
  servers: { url: string }[];
  paths: Record<string, Record<string, DescribedOperation>>;
  components: { schemas: Record<string, Json>; responses?: Record<string, DescribedResponse> };
}

export interface DescribedOperation {
  operationId: string;
  summary?: string;
  security?: object[];
  parameters?: { name: string; in: string; required?: boolean; description?: string; schema: Json }[];
  requestBody?: { required?: boolean; content: Record<string, { schema: Json }> };
  responses: Record<string, DescribedResponse | Ref>;
}

export interface DescribedResponse {
  description: string;
  headers?: Record<string, { required?: boolean; schema?: Json } | Ref>;
  content?: Record<string, { schema?: Json }>;
}

interface Ref {
  $ref: string;
}

export type Json = Record<string, unknown>;

export interface AnswerHead {
  method: Method;
  /** Below {base_url}, with or without a query. */
  path: string;
  status: number;
  headers: Headers;
}

/** Statuses without a body, by HTTP. */
const BODILESS = [204, 304];

/**
 * Checks answers against the document that the system serves. Throws for undocumented statuses and fields, so every request of
 * the suite is checked.
 */
export class OpenApiCheck {
  private readonly ajv: Ajv2020;
  private readonly validators = new Map<string, ValidateFunction>();
  private readonly matchers: { pattern: RegExp; template: string }[];

  constructor(readonly document: OpenApi) {
    // Answers have ids in upper case (docs/spec/decisions.md#ids).
    this.ajv = new Ajv2020({ strict: false, allErrors: true, formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/ } });
    addFormats.default(this.ajv);
    this.ajv.addSchema({ ...closeSchemas(document), $id: 'api' });
    this.matchers = Object.keys(document.paths).map((template) => ({
      template,
      pattern: new RegExp(`^${template.replaceAll('.', '\\.').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
    }));
  }

  /** The operation that a request is for; undefined where the document has none. */
  find(method: Method, path: string): DescribedOperation | undefined {
    const [bare = ''] = path.split('?');
    const template = this.matchers.find(({ pattern }) => pattern.test(bare))?.template ?? '';
    return this.document.paths[template]?.[method.toLowerCase()];
  }

  /** `body` is parsed JSON, text, or undefined where nothing came. Throws where the answer is not as documented. */
  check(answer: AnswerHead, body: unknown): void {
    try {
      this.checkAnswer(answer, body);
    } catch (error) {
      const said = typeof body === 'string' ? body.slice(0, 500) : JSON.stringify(body)?.slice(0, 500);
      throw new Error(
        `${answer.method} ${answer.path} → ${answer.status}: ${(error as Error).message}; it said ${said}`,
      );
    }
  }

  /** The data of a frame of the event stream. */
  checkSchema(name: string, value: unknown): void {
    this.validate(`#/components/schemas/${name}`, value);
  }

  private checkAnswer({ method, path, status, headers }: AnswerHead, body: unknown): void {
    checkErrorHeaders(status, headers);
    if (status >= 400) checkReason(status, headers, body);
    const operation = this.find(method, path);
    if (operation === undefined) {
      // What the document does not have can only be refused.
      if (status < 400) throw new Error('the document has no such operation');
      return this.checkContent({ 'application/json': { schema: ERROR } }, method, status, headers, body);
    }
    const { response, pointer } = this.responseOf(operation, method, path, status);
    this.checkHeaders(response, headers);
    this.checkContent(response.content, method, status, headers, body, pointer);
  }

  private responseOf(operation: DescribedOperation, method: Method, path: string, status: number) {
    const described = operation.responses[String(status)];
    if (described === undefined) throw new Error('the status is not documented');
    if ('$ref' in described)
      return { response: this.resolve(described.$ref) as DescribedResponse, pointer: described.$ref };
    const [bare = ''] = path.split('?');
    const template = this.matchers.find(({ pattern }) => pattern.test(bare))!.template;
    const segments = ['paths', template, method.toLowerCase(), 'responses', String(status)];
    return { response: described, pointer: `#/${segments.map(escapePointer).join('/')}` };
  }

  private checkHeaders({ headers: documented = {} }: DescribedResponse, headers: Headers): void {
    for (const [name, described] of Object.entries(documented)) {
      const { required, schema = {} } = '$ref' in described ? (this.resolve(described.$ref) as Json) : described;
      const value = headers.get(name);
      if (value === null && required === true) throw new Error(`the header ${name} is missing`);
      if (value === null) continue;
      const { type } = schema as Json;
      const read = (type === 'integer' || type === 'number') && /^\d+$/.test(value) ? Number(value) : value;
      if (!this.ajv.validate(schema as Json, read)) throw new Error(`the header ${name} is ${value}`);
    }
  }

  private checkContent(
    content: DescribedResponse['content'],
    method: Method,
    status: number,
    headers: Headers,
    body: unknown,
    pointer = '',
  ): void {
    if (method === 'HEAD' || BODILESS.includes(status) || content === undefined) {
      if (body !== undefined) throw new Error('there is a body');
      return;
    }
    const [type = ''] = (headers.get('content-type') ?? '').split(';');
    const described = content[type];
    if (described === undefined) throw new Error(`the content type is ${type || 'missing'}`);
    if (type !== 'application/json') return;
    if (body === undefined) throw new Error('the body is missing');
    const { schema = {} } = described;
    const ref = (schema as { $ref?: string }).$ref;
    this.validate(ref ?? `${pointer}/content/${escapePointer(type)}/schema`, body);
  }

  private validate(ref: string, value: unknown): void {
    const validate = this.validators.get(ref) ?? this.ajv.compile({ $ref: `api${ref}` });
    this.validators.set(ref, validate);
    if (!validate(value)) throw new Error(this.ajv.errorsText(validate.errors));
  }

  private resolve(ref: string): unknown {
    const segments = ref.slice('#/'.length).split('/');
    return segments.reduce<unknown>((value, segment) => (value as Json)[segment], this.document);
  }
}

const ERROR = { $ref: '#/components/schemas/ErrorEnvelope' };

/** What holds for every such refusal (docs/spec/decisions.md#errors), whatever the document says. */
function checkErrorHeaders(status: number, headers: Headers): void {
  if (status === 401 && headers.get('www-authenticate') !== 'Bearer') throw new Error('WWW-Authenticate is missing');
  if ((status === 429 || status === 503) && !/^[1-9]\d*$/.test(headers.get('retry-after') ?? '')) {
    throw new Error('Retry-After is missing');
  }
}

/** Rows of docs/api/errors.md: reason, code and status. */
const REASONS = new Map(
  [
    ...readFileSync(join(import.meta.dirname, '../../../docs/api/errors.md'), 'utf8').matchAll(
      /^\| `(\w+)` \| `(\w+)` \| (\d{3}) \|/gm,
    ),
  ].map(([, reason = '', code, status]) => [reason, `${status} ${code}`]),
);

/** Every reason is documented, with the code and the status of this answer. */
function checkReason(status: number, headers: Headers, body: unknown): void {
  const reason = headers.get('spool-error-reason') ?? '';
  const documented = REASONS.get(reason);
  const { code } = (body as { error?: { code?: string } } | undefined)?.error ?? {};
  const isRight = code === undefined ? documented?.startsWith(`${status} `) : documented === `${status} ${code}`;
  if (isRight !== true) throw new Error(`the reason ${reason} is documented with ${documented}`);
}

function escapePointer(segment: string): string {
  return encodeURIComponent(segment.replaceAll('~', '~0').replaceAll('/', '~1'));
}
