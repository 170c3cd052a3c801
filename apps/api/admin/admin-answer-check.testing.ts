import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { ADMIN_ERRORS, ANSWER_TYPES, adminOperations, type AdminErrorCode, type AdminOperationName } from '#contract';

interface Document {
  components: object;
  paths: Record<
    string,
    Record<string, { responses: Record<string, { content?: Record<string, { schema: object }> }> }>
  >;
}

const OTHER_STATUSES: Partial<Record<AdminErrorCode, number[]>> = {
  invalid_request: [413, 415],
  internal_error: [503],
};

/** Holds answers against the operation's own schema, and against the document that the API serves. */
export class AdminAnswerCheck {
  private readonly ajv: Ajv2020;

  constructor(private readonly document: Document) {
    this.ajv = new Ajv2020({ strict: false, allErrors: true, formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/ } });
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'admin', components: document.components });
  }

  /** An answer, or one of its lines. */
  checkAnswer(name: AdminOperationName, status: number, value: unknown): void {
    const operation = adminOperations[name];
    if (status !== operation.status) throw new Error(`${name} answered ${status} instead of ${operation.status}`);
    operation.answer.parse(value);
    const described = this.document.paths[operation.path]?.[operation.method.toLowerCase()];
    const schema = described?.responses[status]?.content?.[ANSWER_TYPES[operation.form]]?.schema;
    if (schema === undefined) throw new Error(`${name} answered ${operation.form}, which is not documented`);
    this.validate(name, schema, value);
  }

  checkError(name: string, status: number, value: unknown): void {
    this.validate(name, { $ref: '#/components/schemas/Error' }, value);
    const { code } = (value as { error: { code: AdminErrorCode } }).error;
    const statuses = [ADMIN_ERRORS[code].status, ...(OTHER_STATUSES[code] ?? [])];
    if (!statuses.includes(status)) throw new Error(`${name}: ${code} with ${status}`);
  }

  private validate(name: string, schema: object, value: unknown): void {
    const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"#/components', '"admin#/components')) as object;
    if (!this.ajv.validate(absolute, value)) throw new Error(`${name}: ${this.ajv.errorsText()}`);
  }
}
