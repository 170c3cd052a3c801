/** A request as it goes over the wire. */
export interface WireRequest {
  /** The request line and the headers, without the empty line. */
  head: string[];
  body: Buffer;
}

export interface WireTwist {
  /** `headers` are bytes as Latin-1. */
  apply(request: WireRequest): Buffer;
  /** No answer is an answer: the connection may simply be closed. */
  mayClose?: boolean;
  /** The caller says that nothing more comes. */
  endsEarly?: boolean;
}

const write = ({ head, body }: WireRequest): Buffer =>
  Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`, 'latin1'), body]);

const withLine = (request: WireRequest, ...lines: string[]): Buffer =>
  write({ ...request, head: [...request.head, ...lines] });

const withoutLine = ({ head, body }: WireRequest, name: RegExp, ...lines: string[]): Buffer =>
  write({ head: [...head.filter((line) => !name.test(line)), ...lines], body });

const withFirst = ({ head, body }: WireRequest, change: (line: string) => string): Buffer =>
  write({ head: [change(head[0]!), ...head.slice(1)], body });

const LENGTH = /^(content-length|transfer-encoding):/i;

/** What breaks HTTP itself. Each is answered, or the connection is closed; nobody is left hanging. */
export const TRANSPORT_TWISTS: Record<string, WireTwist> = {
  none: { apply: write },
  'HTTP/1.0': { apply: (request) => withFirst(request, (line) => line.replace('HTTP/1.1', 'HTTP/1.0')) },
  'HTTP/9.9': { apply: (request) => withFirst(request, (line) => line.replace('HTTP/1.1', 'HTTP/9.9')) },
  'no version': { apply: (request) => withFirst(request, (line) => line.replace(' HTTP/1.1', '')), mayClose: true },
  'HTTP/2 preface': { apply: () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), mayClose: true },
  'TLS hello': { apply: () => Buffer.from('16030100c8010000c40303', 'hex'), endsEarly: true },
  'lower-case method': { apply: (request) => withFirst(request, (line) => line.toLowerCase()) },
  'unknown method': { apply: (request) => withFirst(request, (line) => line.replace(/^\w+/, 'FROBNICATE')) },
  'two spaces': { apply: (request) => withFirst(request, (line) => line.replace(' ', '  ')) },
  'no slash': { apply: (request) => withFirst(request, (line) => line.replace(' /', ' ')) },
  asterisk: { apply: (request) => withFirst(request, (line) => line.replace(/ .* /, ' * ')) },
  'absolute URL': { apply: (request) => withFirst(request, (line) => line.replace(' /', ' http://other.example/')) },
  'absolute URL of nothing': { apply: (request) => withFirst(request, (line) => line.replace(/ .* /, ' http://[ ')) },
  'a NUL in the URL': { apply: (request) => withFirst(request, (line) => line.replace(' HTTP', '\0 HTTP')) },
  'a URL of 70 kB': {
    apply: (request) => withFirst(request, (line) => line.replace(' HTTP', `${'a'.repeat(70_000)} HTTP`)),
  },
  CONNECT: {
    apply: () => Buffer.from('CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n'),
    mayClose: true,
  },
  'no host': { apply: (request) => withoutLine(request, /^host:/i) },
  'two hosts': { apply: (request) => withLine(request, 'Host: other.example') },
  'a host of nothing': { apply: (request) => withoutLine(request, /^host:/i, 'Host: ][%%') },
  'a header without colon': { apply: (request) => withLine(request, 'nonsense') },
  'a header without name': { apply: (request) => withLine(request, ': x') },
  'a space before the colon': { apply: (request) => withLine(request, 'X-A : b') },
  'a folded header': { apply: (request) => withLine(request, 'X-A: b', ' c') },
  'a NUL in a header': { apply: (request) => withLine(request, 'X-A: b\0c') },
  'a header of 20 kB': { apply: (request) => withLine(request, `X-A: ${'a'.repeat(20_000)}`) },
  '3,000 headers': { apply: (request) => withLine(request, ...Array.from({ length: 3_000 }, () => 'a: b')) },
  'line feeds only': {
    apply: ({ head, body }) => Buffer.concat([Buffer.from(`${head.join('\n')}\n\n`, 'latin1'), body]),
    endsEarly: true,
  },
  'empty lines before it': { apply: (request) => Buffer.concat([Buffer.from('\r\n\r\n'), write(request)]) },
  'an upgrade': {
    apply: (request) =>
      withLine(request, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='),
    mayClose: true,
  },
  'an upgrade to HTTP/2': {
    apply: (request) =>
      withLine(request, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'),
    mayClose: true,
  },
  'expects 100-continue': { apply: (request) => withLine(request, 'Expect: 100-continue') },
  'expects something else': { apply: (request) => withLine(request, 'Expect: a-miracle') },
  'a length and chunks': {
    apply: (request) => withoutLine(request, LENGTH, 'Content-Length: 4', 'Transfer-Encoding: chunked'),
    endsEarly: true,
  },
  'two lengths': { apply: (request) => withoutLine(request, LENGTH, 'Content-Length: 4', 'Content-Length: 5') },
  'a negative length': { apply: (request) => withoutLine(request, LENGTH, 'Content-Length: -1') },
  'a length that is no number': { apply: (request) => withoutLine(request, LENGTH, 'Content-Length: 1e3') },
  'a length beyond any': { apply: (request) => withoutLine(request, LENGTH, 'Content-Length: 99999999999999999999') },
  'a length of 4 GB, cut': {
    apply: (request) => withoutLine(request, LENGTH, 'Content-Length: 4294967296'),
    endsEarly: true,
  },
  'more length than body, cut': {
    apply: ({ head, body }) => withoutLine({ head, body }, LENGTH, `Content-Length: ${body.length + 7}`),
    endsEarly: true,
  },
  'less length than body': {
    apply: ({ head, body }) => withoutLine({ head, body }, LENGTH, `Content-Length: ${Math.max(0, body.length - 3)}`),
    endsEarly: true,
  },
  'chunks of nonsense': {
    apply: ({ head }) => withoutLine({ head, body: Buffer.from('xyz\r\n\r\n') }, LENGTH, 'Transfer-Encoding: chunked'),
    endsEarly: true,
  },
  'a chunk beyond any size': {
    apply: ({ head }) =>
      withoutLine({ head, body: Buffer.from('ffffffffffffffffff\r\n') }, LENGTH, 'Transfer-Encoding: chunked'),
    endsEarly: true,
  },
  'chunks, cut': {
    apply: ({ head }) => withoutLine({ head, body: Buffer.from('5\r\nab') }, LENGTH, 'Transfer-Encoding: chunked'),
    endsEarly: true,
  },
  'an unknown transfer': {
    apply: (request) => withoutLine(request, LENGTH, 'Transfer-Encoding: gzip'),
    endsEarly: true,
  },
  'half a head, cut': {
    apply: ({ head }) => Buffer.from(head.join('\r\n').slice(0, 40), 'latin1'),
    endsEarly: true,
  },
  'nothing at all': { apply: () => Buffer.alloc(0), endsEarly: true },
};
