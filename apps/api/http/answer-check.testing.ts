import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import {
  ERROR_REASONS,
  openApiDocument,
  operations,
  REASON_HEADER,
  type ErrorEnvelope,
  type ErrorReason,
  type Operation,
} from '#contract';
import { closeSchemas } from '#testing';

/** Checks answers against the OpenAPI document. Rejects undocumented statuses and fields. */
export class AnswerCheck {
  private readonly document: Document;
  private readonly ajv: Ajv2020;
  private readonly validators = new Map<string, ValidateFunction>();

  /** Takes `compatibility`: whether the tested API has the older fields. */
  constructor({ compatibility }: { compatibility: boolean }) {
    this.document = closeSchemas(openApiDocument('/api/v1', { compatibility })) as unknown as Document;
    this.ajv = new Ajv2020({ strict: false, allErrors: true, formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/ } });
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'api', components: this.document.components });
  }

  check(method: string, path: string, { status, headers }: Response, json: unknown): void {
    const operation = findOperation(method, path.split('?')[0] ?? '');
    // A request outside of the operations is checked only if it is refused.
    const described = operation && this.follow(this.document.paths[operation.path]?.[method.toLowerCase()], status);
    if (operation && !described) throw new Error(`${method} ${path} answered ${status}, which is not documented`);
    for (const [name, { required, schema }] of Object.entries(described?.headers ?? {})) {
      const value = headers.get(name);
      if (value === null && required) throw new Error(`${method} ${path} answered ${status} without ${name}`);
      const typed = schema.type === 'integer' ? Number(value) : value;
      if (value !== null && !this.ajv.validate(schema, typed))
        throw new Error(`${name}: ${value} is not as documented`);
    }
    if (!operation && status < 400) return;
    if (headers.get('content-type') !== 'application/json; charset=utf-8') throw new Error('not answered as JSON');
    const ref = described?.content?.['application/json'].schema.$ref ?? '#/components/schemas/ErrorEnvelope';
    const validate = this.validatorOf(ref);
    if (!validate(json)) throw new Error(`${method} ${path}: ${this.ajv.errorsText(validate.errors)}`);
    if (status >= 400) checkReason(status, headers, json as ErrorEnvelope);
  }

  private follow(described: Described | undefined, status: number): Answer | undefined {
    const answer = described?.responses[status];
    const name = answer?.$ref?.split('/').at(-1);
    return name === undefined ? answer : this.document.components.responses[name];
  }

  private validatorOf(ref: string): ValidateFunction {
    const validate = this.validators.get(ref) ?? this.ajv.compile({ $ref: `api${ref}` });
    this.validators.set(ref, validate);
    return validate;
  }
}

/** Throws unless the reason of an error answer is in the catalogue and has the same code and status. */
function checkReason(status: number, headers: Headers, { error: { code } }: ErrorEnvelope): void {
  const reason = headers.get(REASON_HEADER) ?? 'none';
  const cause = reason in ERROR_REASONS ? ERROR_REASONS[reason as ErrorReason] : undefined;
  if (cause?.code === code && cause.status === status) return;
  throw new Error(`${status} ${code} was answered with the reason ${reason}`);
}

interface Document {
  components: { responses: Record<string, Answer> };
  paths: Record<string, Record<string, Described>>;
}

interface Described {
  responses: Record<number, Answer>;
}

interface Answer {
  $ref?: string;
  headers?: Record<string, { required?: boolean; schema: { type?: string } }>;
  content?: JsonContent;
}

interface JsonContent {
  'application/json': { schema: { $ref: string } };
}

function findOperation(method: string, path: string): Operation | undefined {
  return Object.values<Operation>(operations).find(
    (operation) =>
      operation.method === method && new RegExp(`^${operation.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path),
  );
}
