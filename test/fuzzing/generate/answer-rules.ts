import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { closeSchemas } from '#testing';
import type { BuiltRequest } from './build-request.ts';
import type { Outcome, WireAnswer } from './connection.ts';
import type { ApiDocument, ResponseObject, Schema } from './document.ts';
import { TRANSPORT_TWISTS } from './transport.ts';

/**
 * Which statuses a code may come with (docs/spec/agent-threads-api.md#errors, docs/spec/decisions.md#errors). 5xx is
 * no answer to any request here.
 */
const STATUSES: Record<string, number[]> = {
  // The last ones: of what is not even HTTP, or of no operation.
  invalid_request: [400, 413, 415, 416, 405, 408, 414, 417, 431],
  invalid_json: [400],
  unauthenticated: [401],
  forbidden: [403],
  not_found: [404],
  agent_not_published: [409],
  service_inactive: [409],
  readiness_blocked: [409],
  idempotency_conflict: [409, 412],
  rate_limited: [429],
};

/** Must be there, where they are documented for the status. */
const PROMISED: Record<number, string> = { 401: 'WWW-Authenticate', 429: 'Retry-After' };
/** The shape of the request was refused, and not what it asks for. */
const REFUSALS_OF_SHAPE = [400, 413, 415];
const LEAKS = /\bat \S+ \(|node_modules|\/dist\/|\.[jt]s:\d+|\bselect\b.*\bfrom\b|postgres|ECONN/i;

/** What must hold of every answer, whatever was asked. */
export class AnswerRules {
  private readonly ajv: Ajv2020;
  private readonly validators = new Map<Schema, ValidateFunction>();

  constructor(private readonly document: ApiDocument) {
    const either = /^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/;
    this.ajv = new Ajv2020({ strict: false, allErrors: true, formats: { ulid: either, binary: true } });
    addFormats.default(this.ajv);
    // The components make `#/components/…` resolvable. The schemas are closed, so an undocumented field is an error.
    this.ajv.addSchema({ $id: 'api', components: closeSchemas(document.components) });
  }

  /** What is wrong with the answer; nothing where all is well. */
  problemsOf(request: BuiltRequest, outcome: Outcome): string[] {
    if (outcome === 'silent') return ['neither answered nor closed in time'];
    if (outcome === 'closed') return mayClose(request) ? [] : ['the connection was closed without an answer'];
    const { status } = outcome;
    if (status >= 500 || !(status >= 200)) return [`answered ${status}: ${textOf(outcome)}`];
    const expected = this.expectationOf(request);
    return [
      ...(status >= 400 ? this.problemsOfRefusal(request, outcome) : this.problemsOfSuccess(request, outcome)),
      ...this.problemsOfHeaders(request, outcome),
      ...(expected === 'refused' && status < 400 ? [`answered ${status}, though the request is wrong`] : []),
      ...(expected === 'accepted' && REFUSALS_OF_SHAPE.includes(status) && !mayNameNoDraft(request)
        ? [`answered ${status}, though the document allows it: ${textOf(outcome)}`]
        : []),
      ...(request.lacksToken && !request.isOffRoute && status !== 401 ? [`answered ${status} to no valid token`] : []),
    ];
  }

  /** Whether the document allows the body is for ajv to say: what was made wrong here may fit there. */
  private expectationOf({ expected, operation, json, plan }: BuiltRequest): BuiltRequest['expected'] {
    const schema = operation.body?.content['application/json'];
    if (json === undefined || schema === undefined || expected === 'anything') return expected;
    const fits = this.validatorOf(schema)(json);
    if (expected === 'accepted' && !fits) throw new Error(`a body meant to be right is wrong: ${JSON.stringify(json)}`);
    const onlyBody = plan.why.every((why) => why.startsWith('body'));
    return expected === 'refused' && onlyBody && fits && !holdsUnstorable(json) ? 'anything' : expected;
  }

  private problemsOfRefusal({ operation, isOffRoute, method }: BuiltRequest, answer: WireAnswer): string[] {
    const { status } = answer;
    const problems = isOffRoute || operation.responses[status] ? [] : [`answered ${status}, which is not documented`];
    if (method === 'HEAD') return problems;
    const json = parse(answer);
    if (!isJson(answer) || !this.validatorOf({ $ref: '#/components/schemas/ErrorEnvelope' })(json)) {
      return [...problems, `answered ${status} without the error envelope: ${textOf(answer)}`];
    }
    const { code, message } = (json as { error: { code: string; message: string } }).error;
    if (!STATUSES[code]?.includes(status)) problems.push(`answered ${status} with ${code}`);
    if (message === '' || LEAKS.test(message))
      problems.push(`the message is empty or tells of our insides: ${message}`);
    return problems;
  }

  private problemsOfSuccess({ operation, isOffRoute, method }: BuiltRequest, answer: WireAnswer): string[] {
    const { status, headers, body } = answer;
    const response = operation.responses[status];
    if (response === undefined) return isOffRoute ? [] : [`answered ${status}, which is not documented`];
    if (method === 'HEAD' || isOffRoute) return [];
    const { content } = response;
    if (content === undefined) return body.length === 0 ? [] : [`answered ${status} with a body`];
    const type = headers['content-type']?.split(';')[0] ?? 'none';
    const described = content[type];
    if (described === undefined) return [`answered ${status} as ${type}, which is not documented`];
    if (type === 'text/event-stream') return this.problemsOfFrames(body.toString());
    if (type !== 'application/json') return [];
    const validate = this.validatorOf(described.schema ?? {});
    return validate(parse(answer)) ? [] : [`answered ${status}: ${this.ajv.errorsText(validate.errors)}`];
  }

  private problemsOfFrames(text: string): string[] {
    const whole = text.slice(0, text.lastIndexOf('\n') + 1);
    const lines = whole.split('\n').filter((line) => line !== '');
    const odd = lines.filter((line) => !/^(:|(event|id|data|retry): ?)/.test(line));
    const entry = this.document.components.schemas['ThreadEventLogEntry']
      ? '#/components/schemas/ThreadEventLogEntry'
      : null;
    const entries = [...whole.matchAll(/event: thread\.event\nid: (\w+)\ndata: (.*)\n/g)];
    const wrong = entries.filter(([, id, data]) => {
      const value = JSON.parse(data!) as { id: string };
      return value.id !== id || (entry !== null && !this.validatorOf({ $ref: entry })(value));
    });
    return [...odd.map((line) => `no line of a stream: ${line}`), ...wrong.map(([frame]) => `no entry: ${frame}`)];
  }

  private problemsOfHeaders({ operation, isOffRoute }: BuiltRequest, { status, headers }: WireAnswer): string[] {
    const documented: ResponseObject['headers'] = isOffRoute ? {} : (operation.responses[status]?.headers ?? {});
    return Object.entries(documented).flatMap(([name, { schema = {}, required }]) => {
      const value = headers[name.toLowerCase()];
      if (value === undefined)
        return required || PROMISED[status] === name ? [`answered ${status} without ${name}`] : [];
      const typed = schema.type === 'integer' && /^\d+$/.test(value) ? Number(value) : value;
      return this.validatorOf(schema)(typed) ? [] : [`${name}: ${value} is not as documented`];
    });
  }

  /** Schemas of the document are the same objects each time. */
  private validatorOf(schema: Schema): ValidateFunction {
    const key = schema.$ref === undefined ? schema : (this.refs[schema.$ref] ??= { $ref: schema.$ref });
    const known = this.validators.get(key);
    if (known) return known;
    const validate = this.ajv.compile(absolute(schema) as object);
    this.validators.set(key, validate);
    return validate;
  }

  private readonly refs: Record<string, Schema> = {};
}

/** References as seen from outside the document. */
function absolute(schema: unknown): unknown {
  const text = JSON.stringify(schema);
  return JSON.parse(text.replaceAll('"$ref":"#/', '"$ref":"api#/'));
}

function mayClose({ plan }: BuiltRequest): boolean {
  const { mayClose = false, endsEarly = false } = TRANSPORT_TWISTS[plan.transport]!;
  // Who hangs up is not sure of an answer.
  return mayClose || endsEarly;
}

/** Whether a file that is named is a draft still, no document can say (docs/spec/decisions.md#resources). */
const mayNameNoDraft = ({ plan }: BuiltRequest): boolean => /"(file_id|fileId)"/.test(JSON.stringify(plan.body));

const isJson = ({ headers }: WireAnswer): boolean => headers['content-type'] === 'application/json; charset=utf-8';

function parse({ body }: WireAnswer): unknown {
  try {
    return JSON.parse(body.toString()) as unknown;
  } catch {
    return undefined;
  }
}

const textOf = ({ body }: WireAnswer): string => body.toString().slice(0, 300);

/** NUL and lone surrogates, which JSON Schema has no word for. */
function holdsUnstorable(json: unknown): boolean {
  if (typeof json === 'string') return /\0|\p{Surrogate}/u.test(json);
  if (typeof json !== 'object' || json === null) return false;
  return Object.entries(json).some(([name, value]) => holdsUnstorable(name) || holdsUnstorable(value));
}
