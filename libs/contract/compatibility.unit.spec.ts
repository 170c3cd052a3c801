import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import {
  compatibleCreateThreadBody,
  compatibleSendEventsBody,
  createThreadBody,
  LIMITS,
  openApiDocument,
  operations,
  sendEventsBody,
} from './index.ts';

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const create = (fields: object) => ({ userId: 'u', ...fields });
const message = (fields: object) => ({ events: [{ type: 'user_message', text: 'a', ...fields }] });

interface Schema {
  properties: Record<string, { description?: string }>;
  required: string[];
}
interface Example {
  value: object;
}
type Content = Record<string, { schema: { $ref?: string }; examples?: Record<string, Example> }>;
interface Document {
  paths: Record<
    string,
    Record<string, { requestBody?: { content: Content }; responses: Record<string, { content?: Content }> }>
  >;
  components: { schemas: Record<string, Schema> };
}

const off = openApiDocument('/api/v1') as unknown as Document;
const on = openApiDocument('/api/v1', { compatibility: true }) as unknown as Document;

const ajv = new Ajv2020({
  strict: false,
  allErrors: true,
  formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/ },
});
addFormats.default(ajv);
ajv.addSchema({ $id: 'api', components: on.components });
const fits = (ref: string, value: unknown): boolean => ajv.validate({ $ref: `api${ref}` }, value);

describe('what is taken', () => {
  const { externalRef, requestId } = LIMITS;

  it.each<[string, object, boolean]>([
    ['neither', {}, true],
    ['a reference', { client_external_ref: 'ticket 7' }, true],
    ['an empty reference', { client_external_ref: '' }, false],
    ['the longest reference', { client_external_ref: '😀'.repeat(externalRef) }, true],
    ['a longer one', { client_external_ref: 'a'.repeat(externalRef + 1) }, false],
    ['no text', { client_external_ref: 7 }, false],
    ['a null reference', { client_external_ref: null }, false],
    ['a person', { attributed_user_id: ID.toLowerCase() }, true],
    ['a person that is no id', { attributed_user_id: 'ada' }, false],
    ['a null person', { attributed_user_id: null }, false],
    ['both', { client_external_ref: 'x', attributed_user_id: ID }, true],
    ['an unknown field', { client_external_id: 'x' }, false],
    ['what is only answered', { attributed_user: { id: ID } }, false],
  ])('of a new Thread with %s, as the document says', (_, fields, isTaken) => {
    expect(compatibleCreateThreadBody.safeParse(create(fields)).success).toBe(isTaken);
    expect(fits('#/components/schemas/CreateThread', create(fields))).toBe(isTaken);
  });

  it.each<[string, object, boolean]>([
    ['neither', {}, true],
    ['the older name', { clientRequestId: '' }, true],
    ['the longest', { clientRequestId: '😀'.repeat(requestId) }, true],
    ['a longer one', { clientRequestId: 'a'.repeat(requestId + 1) }, false],
    ['a number', { clientRequestId: 7 }, false],
    ['null', { clientRequestId: null }, true],
    ['both, null', { clientRequestId: null, requestId: null }, true],
    ['both, one of them null', { clientRequestId: 'a', requestId: null }, true],
    ['both, equal', { clientRequestId: 'a', requestId: 'a' }, true],
    ['an unknown field', { client_request_id: 'a' }, false],
  ])('of a message with %s, as the document says', (_, fields, isTaken) => {
    expect(compatibleSendEventsBody.safeParse(message(fields)).success).toBe(isTaken);
    expect(fits('#/components/schemas/SendEvents', message(fields))).toBe(isTaken);
  });

  it.each([
    ['b', 'a'],
    ['', 'a'],
    ['a', ''],
  ])('but not two names with two values, %j and %j', (clientRequestId, other) => {
    const issues = compatibleSendEventsBody.safeParse(message({ clientRequestId, requestId: other })).error?.issues;
    expect(issues).toMatchObject([
      { path: ['events', 0, 'clientRequestId'], message: 'must be the same as requestId' },
    ]);
  });

  it.each(['a\0', '\uD800'])('but not the text %j', (wrong) => {
    expect(compatibleCreateThreadBody.safeParse(create({ client_external_ref: wrong })).success).toBe(false);
    expect(compatibleSendEventsBody.safeParse(message({ clientRequestId: wrong })).success).toBe(false);
  });

  it('nowhere else, and nothing of it by the schemas of the contract', () => {
    const decision = { type: 'permission_decision', requestId: 'r', decision: 'allow_once', clientRequestId: 'r' };
    expect(compatibleSendEventsBody.safeParse({ events: [decision] }).success).toBe(false);
    for (const fields of [{ client_external_ref: 'x' }, { attributed_user_id: ID }]) {
      expect(createThreadBody.safeParse(create(fields)).success).toBe(false);
    }
    expect(sendEventsBody.safeParse(message({ clientRequestId: 'x' })).success).toBe(false);
  });

  it('ids in upper case from there on', () => {
    const { attributed_user_id } = compatibleCreateThreadBody.parse(create({ attributed_user_id: ID.toLowerCase() }));
    expect(attributed_user_id).toBe(ID);
  });

  it('and every example of the contract, unchanged', () => {
    for (const { path, compatibleBody } of [operations.createThread, operations.sendEvents]) {
      const { examples = {} } = on.paths[path]!['post']!.requestBody!.content['application/json']!;
      const values = Object.values(examples).map(({ value }) => value);
      expect(values.length).toBeGreaterThan(2);
      for (const value of values) expect(compatibleBody.parse(value)).toEqual(value);
    }
  });
});

describe('the OpenAPI document', () => {
  const ADDED = {
    CreateThread: [['client_external_ref', 'attributed_user_id'], []],
    UserMessage: [['clientRequestId'], []],
    ThreadSummary: [
      ['client_external_ref', 'attributed_user', 'created_by'],
      ['client_external_ref', 'attributed_user', 'created_by'],
    ],
    ThreadEventResult: [['clientRequestId'], ['clientRequestId']],
  };

  it('has the fields and nothing else that is new', () => {
    expect(Object.keys(on.components.schemas)).toEqual(Object.keys(off.components.schemas));
    for (const [name, schema] of Object.entries(on.components.schemas)) {
      const before = off.components.schemas[name]!;
      const [fields = [], required = []] = ADDED[name as keyof typeof ADDED] ?? [];
      for (const field of fields) expect(schema.properties[field]?.description).toMatch(/\w/);
      const added = Object.fromEntries(fields.map((field) => [field, schema.properties[field]]));
      const expected = {
        ...before,
        properties: { ...before.properties, ...added },
        required: [...(before.required ?? []), ...required],
      };
      expect([name, schema]).toEqual([name, fields.length === 0 ? before : expected]);
    }
  });

  it('shows them in every Thread and result', () => {
    let shown = 0;
    for (const item of Object.values(on.paths)) {
      for (const { responses } of Object.values(item)) {
        for (const { schema, examples = {} } of Object.values(responses).flatMap(({ content = {} }) =>
          Object.values(content),
        )) {
          if (schema.$ref === undefined) continue;
          for (const { value } of Object.values(examples)) {
            expect([value, fits(schema.$ref, value), ajv.errorsText()]).toEqual([value, true, 'No errors']);
            if (JSON.stringify(value).includes('client_external_ref')) shown++;
          }
        }
      }
    }
    expect(shown).toBeGreaterThan(5);
  });
});
