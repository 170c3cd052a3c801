import { decodeData } from './decode-data.ts';

const bytes = Buffer.from([0xfb, 0xef, 0xff, 0x00]);
const standard = '++//AA==';

it.each<[string, string, { bytes: Buffer; mimeType?: string } | null]>([
  ['base64', standard, { bytes }],
  ['base64 without padding', '++//AA', { bytes }],
  ['base64url', '--__AA', { bytes }],
  ['base64 in lines', '++//\r\nAA==\n', { bytes }],
  ['a data URI', `data:image/png;base64,${standard}`, { bytes, mimeType: 'image/png' }],
  ['a data URI with base64url', ' DATA:image/png;Base64,--__AA', { bytes, mimeType: 'image/png' }],
  ['a data URI with a parameter', `data:audio/wav;rate=8; base64,${standard}`, { bytes, mimeType: 'audio/wav' }],
  ['a data URI with percent signs', 'data:image/png;base64,%2B%2B//AA%3D%3D', { bytes, mimeType: 'image/png' }],
  ['a data URI without a type', `data:;base64,${standard}`, { bytes }],
  [
    'a data URI with text',
    'data:image/svg+xml,%3Csvg/%3E',
    { bytes: Buffer.from('<svg/>'), mimeType: 'image/svg+xml' },
  ],
  ['nothing', '', { bytes: Buffer.alloc(0) }],
  ['other text', 'not base64!', null],
  ['a single character', 'A', null],
  ['a data URI without a comma', 'data:image/png;base64', null],
  ['a data URI with a broken percent sign', 'data:text/plain,%zz', null],
])('decodes %s', (_what, text, decoded) => {
  expect(decodeData(text)).toEqual(decoded);
});
