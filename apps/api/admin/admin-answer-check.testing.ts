import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
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
  not_found: [410],
  internal_error: [503],
};

/** Checks answers against the schema of the operation, and against the document that the API serves. */
export class AdminAnswerCheck {
  private readonly ajv: Ajv2020;
  /** Compiled validators by the text of the schema. Compiling one takes longer than the request. */
  private readonly validators = new Map<string, ValidateFunction>();

  constructor(private readonly document: Document) {
    this.ajv = new Ajv2020({ strict: false, allErrors: true, formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/ } });
    addFormats.default(this.ajv);
    this.ajv.addSchema({ $id: 'admin', components: document.components });
  }

  /** Checks an answer, or one of its lines. */
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
    this.validate(name, { $ref: '#/components/schemas/ErrorEnvelope' }, value);
    const { code } = (value as { error: { code: AdminErrorCode } }).error;
    const statuses = [ADMIN_ERRORS[code].status, ...(OTHER_STATUSES[code] ?? [])];
    if (!statuses.includes(status)) throw new Error(`${name}: ${code} with ${status}`);
  }

  private validate(name: string, schema: object, value: unknown): void {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"admin#/components');
    const validate = this.validators.get(text) ?? this.ajv.compile(JSON.parse(text) as object);
    this.validators.set(text, validate);
    if (!validate(value)) throw new Error(`${name}: ${this.ajv.errorsText(validate.errors)}`);
  }
}
