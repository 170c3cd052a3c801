import { parseMessage } from './message.ts';

const request = (id: unknown, more: object) => ({ jsonrpc: '2.0', id, ...more });
const initialized = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: '', version: '' },
};
const error = (code: number, message: string) => ({ error: { code, message } });
const NO_REASON = 'The tool server gave no reason.';

it.each<[string, object, object]>([
  ['a null error beside a result', request(1, { result: { a: 1 }, error: null }), { result: { a: 1 } }],
  ...[{}, [], '', false, { code: 0, message: '' }, { code: null }].map((given): [string, object, object] => [
    `the empty error ${JSON.stringify(given)} beside a result`,
    request(1, { result: { a: 1 }, error: given }),
    { result: { a: 1 } },
  ]),
  [
    'an error that is not empty beside a result',
    request(1, { result: {}, error: { code: 5, message: '' } }),
    error(5, NO_REASON),
  ],
  ['null meta data of a result', request(1, { result: { a: 1, _meta: null } }), { result: { a: 1 } }],
  ['meta data of a wrong type', request(1, { result: { a: 1, _meta: [] } }), { result: { a: 1 } }],
  ['null for a list of tools', request(1, { result: { tools: null, a: null } }), { result: { tools: null } }],
  ['unknown fields', request(1, { result: {}, time: 5 }), { result: {} }],
  ['null as the result', request(1, { result: null }), { result: {} }],
  ['a result that is no map', request(1, { result: 'text' }), { result: { content: 'text' } }],
  ['an error without a code', request(1, { error: { message: 'no' } }), error(-32603, 'no')],
  [
    'an error with null for its code',
    request(1, { error: { code: null, message: 'no', data: null } }),
    error(-32603, 'no'),
  ],
  ['an error with a text for its code', request(1, { error: { code: '-32000', message: 'no' } }), error(-32000, 'no')],
  ['an error with a word for its code', request(1, { error: { code: 'E_NO', message: 'no' } }), error(-32603, 'no')],
  ['an error with a fraction for its code', request(1, { error: { code: 1.5, message: 'no' } }), error(-32603, 'no')],
  ['an error without a message', request(1, { error: { code: 5, message: null } }), error(5, NO_REASON)],
  ['an empty error beside a null result', request(1, { result: null, error: {} }), error(-32603, NO_REASON)],
  ['an empty error', request(1, { error: {} }), error(-32603, NO_REASON)],
  ['an error that is a text', request(1, { error: 'no' }), error(-32603, 'no')],
  ['an error beside a null result', request(1, { result: null, error: { message: 'no' } }), error(-32603, 'no')],
  [
    'null params and a null id of a notification',
    { jsonrpc: '2.0', id: null, method: 'notifications/tools/list_changed', params: null },
    { method: 'notifications/tools/list_changed' },
  ],
  [
    'nulls in the params of a request',
    request('a', { method: 'ping', params: { a: null, _meta: { progressToken: null } } }),
    { id: 'a', method: 'ping', params: { _meta: {} } },
  ],
  ['an initialize result', request(1, { result: { ...initialized, instructions: null } }), { result: initialized }],
  ...[{ content: [] }, { structuredContent: {} }, { toolResult: 'a' }, { tools: [] }].map(
    (more): [string, object, object] => [
      `a protocol version beside ${JSON.stringify(more)}`,
      request(1, { result: { protocolVersion: 'a', ...more } }),
      { result: { protocolVersion: 'a', ...more } },
    ],
  ),
  [
    'an initialize result without names, with nulls',
    request(1, { result: { ...initialized, capabilities: { tools: {}, logging: null, x: 5 }, serverInfo: null } }),
    { result: initialized },
  ],
  [
    'an initialize result without capabilities',
    request(1, { result: { protocolVersion: '2025-06-18', capabilities: null } }),
    { result: { ...initialized, capabilities: {} } },
  ],
])('reads a message with %s', (_what, given, is) => {
  const read = parseMessage(JSON.stringify(given));
  const id = 'method' in is ? {} : { id: 1 };
  expect(read).toEqual({ jsonrpc: '2.0', ...id, ...is });
});

it.each([
  ['a byte order mark', '\uFEFF'],
  ['several byte order marks', '\uFEFF\uFEFF'],
  ['the end of a line of Windows', '\r'],
  ['a byte order mark between spaces', ' \uFEFF\t'],
])('reads a message beside %s', (_what, mark) => {
  const text = JSON.stringify(request(1, { result: {} }));
  expect(parseMessage(`${mark}${text}${mark}`)).toEqual(request(1, { result: {} }));
});

it.each([
  '',
  'null',
  '5',
  '[]',
  '{"id":1,"result":{}}',
  '{"level":"error","error":"a line of a log"}',
  '{"jsonrpc":"1.0","id":1,"result":{}}',
  '{"jsonrpc":"2.0","id":1}',
  '{"jsonrpc":"2.0","id":{},"result":{}}',
])('reads no message from %s', (text) => {
  expect(() => parseMessage(text)).toThrow();
});
