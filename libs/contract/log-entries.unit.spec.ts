import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { openApiDocument, threadEventLogEntry } from './index.ts';

interface Schema {
  oneOf?: { $ref: string }[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  properties?: Record<string, Record<string, unknown>>;
  required?: string[];
}

const ULID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const { components } = openApiDocument('/api/v1') as unknown as { components: { schemas: Record<string, Schema> } };
const { schemas } = components;

const ajv = new Ajv2020({ strict: false, formats: { ulid: /^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$/ } });
addFormats.default(ajv);
ajv.addSchema({ $id: 'api', components });
const isEntry = ajv.getSchema('api#/components/schemas/ThreadEventLogEntry')!;

/** The closed set of types, as docs/api/events.md tells callers. */
const TYPES_PAGE = readFileSync(join(import.meta.dirname, '../../docs/api/events.md'), 'utf8');
const [, TYPES_TABLE = ''] = /^### Types$([^]+?)^To join/m.exec(TYPES_PAGE) ?? [];
const LOG_ENTRY_TYPES = [...TYPES_TABLE.matchAll(/^\| `([a-z_.]+)` \|/gm)].map(([, type]) => type);

describe('entries of the log', () => {
  const { oneOf, discriminator } = schemas['ThreadEventLogEntry'] as Required<Schema>;
  const variants = oneOf.map(({ $ref }) => schemas[$ref.split('/').at(-1)!]!);

  it('are a union that `type` selects from, of the closed set of types', () => {
    expect(discriminator.propertyName).toBe('type');
    expect(Object.keys(discriminator.mapping)).toEqual(LOG_ENTRY_TYPES);
    expect(Object.values(discriminator.mapping)).toEqual(oneOf.map(({ $ref }) => $ref));
    expect(variants.map(({ properties }) => properties?.['type']?.['const'])).toEqual(LOG_ENTRY_TYPES);
  });

  it('have the required fields of the contract in each variant', () => {
    const required = ['id', 'type', 'occurredAt', 'runId', 'status', 'content', 'durationMs', 'tokens'];
    for (const variant of variants) expect(variant.required).toEqual(expect.arrayContaining(required));
  });

  it('require the fields of a tool call in `tool.*` and have none elsewhere', () => {
    const entry = { id: ULID, occurredAt: '2026-11-21T09:30:00.123Z', runId: ULID, status: 'available', content: '' };
    const { toolCallId, toolName } = { toolCallId: 'call_1', toolName: 'look_up' };
    const accepts = (fields: object): boolean =>
      isEntry({ ...entry, durationMs: null, tokens: null, ...fields }) === true;
    expect(accepts({ type: 'tool.use.started', toolCallId, toolName, toolInput: { a: 1 } })).toBe(true);
    expect(accepts({ type: 'tool.use.started', toolCallId })).toBe(false);
    expect(accepts({ type: 'user.message', laterField: 1 })).toBe(true);
    expect(accepts({ type: 'user.message', status: 'error' })).toBe(false);
    expect(accepts({ type: 'session.status', runId: null, status: 'unsupported' })).toBe(true);
    expect(accepts({ type: 'later.type' })).toBe(false);
    expect(
      threadEventLogEntry.safeParse({ ...entry, type: 'user.message', durationMs: null, tokens: null }).success,
    ).toBe(true);
    expect(
      threadEventLogEntry.safeParse({ ...entry, type: 'user.message', durationMs: null, tokens: null, toolCallId })
        .success,
    ).toBe(false);
  });
});
