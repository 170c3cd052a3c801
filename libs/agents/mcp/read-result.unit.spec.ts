import { measureTurns, nightTest } from '#testing';
import type { ToolContext } from '../harness.ts';
import { checkResult, readResult, resultBytes } from './read-result.ts';

const MEBIBYTE = 1024 * 1024;
const keep = { saveArtifact: () => Promise.resolve({ fileId: 'file-1' }) };

describe('a result of a tool server', () => {
  nightTest('is read in short turns, however large it is', async () => {
    const secrets = ['secret-one', 'secret-two', 'secret'];
    const results = {
      text: [{ type: 'text' as const, text: 'ä'.repeat(8 * MEBIBYTE) }],
      secrets: [{ type: 'text' as const, text: 'secret'.repeat(2 * MEBIBYTE) }],
      texts: Array.from({ length: 12_000 }, () => ({ type: 'text' as const, text: 'secret-one' })),
      image: [{ type: 'image' as const, mimeType: 'image/png', data: 'A'.repeat(16 * MEBIBYTE) }],
      uri: [{ type: 'resource' as const, resource: { uri: `${'?'.repeat(8 * MEBIBYTE)}\n`, blob: 'AAAA' } }],
      type: [{ type: 'audio' as const, mimeType: ' a/'.repeat(4 * MEBIBYTE), data: 'AAAA' }],
    };
    for (const content of Object.values(results)) {
      await measureTurns(() => readResult({ content }, secrets, keep));
    }
  });

  it('hides secrets as far as it is kept, also where it is cut', async () => {
    const text = `${'x'.repeat(2 * MEBIBYTE - 5)}secret-one`;
    const result = await readResult({ content: [{ type: 'text', text }] }, ['secret-one'], keep);
    expect(result.text.length).toBeGreaterThan(2 * MEBIBYTE - 20);
    expect(result.text).toMatch(/^x+$/);
    const short = await readResult({ content: [{ type: 'text', text: 'a secret-one b' }] }, ['secret-one'], keep);
    expect(short.text).toBe('a *** b');
  });

  it('leaves at most 100 files, and all its texts', async () => {
    const blob = { type: 'resource' as const, resource: { uri: 'file:///a', blob: 'AAAA' } };
    const content = [...Array.from({ length: 103 }, () => blob), { type: 'text' as const, text: 'the end' }];
    const saveArtifact = jest.fn(() => Promise.resolve({ fileId: 'file-1' }));
    const { text } = await readResult({ content }, [], { saveArtifact });
    expect(saveArtifact).toHaveBeenCalledTimes(100);
    expect(text.split('\n').slice(-4)).toEqual([
      ...Array<string>(3).fill('[a file was left out: there are too many]'),
      'the end',
    ]);
  });
});

const UNREADABLE = 'a part that cannot be read';

/** Reads parts, and returns what was kept of them too. */
async function read(content: unknown, more: object = {}) {
  const saved: { mimeType: string | null; bytes: Uint8Array; name: string }[] = [];
  const saveArtifact: ToolContext['saveArtifact'] = (artifact) => {
    saved.push(artifact);
    return Promise.resolve({ fileId: `file-${saved.length}` });
  };
  const result = await readResult(checkResult({ content, ...more }), [], { saveArtifact });
  return {
    ...result,
    saved: saved.map(({ bytes, ...rest }) => ({ ...rest, bytes: Buffer.from(bytes).toString('hex') })),
  };
}

describe('the parts of a result', () => {
  const text = { type: 'text', text: 'the useful part' };

  it.each<[string, unknown, string]>([
    ['a video', { type: 'video', data: 'AAAA', mimeType: 'video/mp4' }, `[${UNREADABLE}, video, video/mp4]`],
    ['the name of a method', { type: 'toString' }, `[${UNREADABLE}, toString]`],
    ['a type of several lines', { type: 'a\nb\u2028c' }, `[${UNREADABLE}, a b c]`],
    ['no type', { type: null, mimeType: 5 }, `[${UNREADABLE}]`],
    ['a number', 5, `[${UNREADABLE}]`],
    ['JSON without a value', { type: 'json', json: null }, `[${UNREADABLE}, json]`],
    ['a list', [text], `[${UNREADABLE}]`],
    ['a text without a text', { type: 'text', text: null }, `[${UNREADABLE}, text]`],
    ['an image without data', { type: 'image', mimeType: 'image/png' }, `[${UNREADABLE}, image, image/png]`],
    [
      'an image without base64',
      { type: 'image', mimeType: 'image/png', data: '%' },
      `[${UNREADABLE}, image, image/png]`,
    ],
    ['a link without an address', { type: 'resource_link', name: 'a', uri: null }, `[${UNREADABLE}, resource_link]`],
    [
      'a resource without content',
      { type: 'resource', resource: { uri: 'a:b', text: null } },
      `[${UNREADABLE}, resource]`,
    ],
    ['a resource that is a text', { type: 'resource', resource: 'a' }, `[${UNREADABLE}, resource]`],
  ])('become one line each if they cannot be read: %s', async (_what, part, line) => {
    expect(await read([text, part])).toEqual({ text: `the useful part\n${line}`, isError: false, saved: [] });
  });

  it.each<[string, unknown, object, string]>([
    ['null annotations and meta data', [{ ...text, annotations: null, _meta: null }], { _meta: null }, text.text],
    ['annotations of wrong types', [{ ...text, annotations: 'x', _meta: 5, icons: [1] }], {}, text.text],
    ['null for a part', [null, text], {}, text.text],
    ['null for other fields', [text], { structuredContent: null, isError: null }, text.text],
    ['null for the parts', null, { structuredContent: { a: null } }, '{"a":null}'],
    ['structured content that is a list', [], { structuredContent: [1] }, '[1]'],
    [
      'an unknown part beside structured content',
      [{ type: 'x' }],
      { structuredContent: { a: 1 } },
      `{"a":1}\n[${UNREADABLE}, x]`,
    ],
    ['an empty text beside structured content', [{ type: 'text', text: '' }], { structuredContent: [1] }, '[1]'],
    ['an empty text and a text', [{ type: 'text', text: '' }, text], { structuredContent: [1] }, `\n${text.text}`],
    ['a text that is no block', ['hello', text], {}, `hello\n${text.text}`],
    ['a text for the parts', 'hello', { structuredContent: [1] }, 'hello'],
    ['one part without a list', text, {}, text.text],
    ['an empty map for the parts', {}, {}, `[${UNREADABLE}]`],
    ['a text without a type', [{ text: 'a' }, { type: null, text: 'b' }], { structuredContent: [1] }, 'a\nb'],
    ['JSON', [{ type: 'json', json: { a: 1 } }], { structuredContent: [1] }, '{"a":1}'],
    ['an old result that is a text', undefined, { toolResult: 'hello' }, 'hello'],
    ['an old result that is a list of parts', undefined, { toolResult: [text] }, text.text],
    ['an old result that is a map', null, { toolResult: { a: 1 } }, '{"a":1}'],
    ['an old result that is a number', undefined, { toolResult: 5 }, '5'],
    ['an old result beside content', [text], { toolResult: 5 }, text.text],
    ['a link without a name', [{ type: 'resource_link', uri: 'a:b', name: null, size: null }], {}, '[link: a:b]'],
    [
      'a resource without an address',
      [{ type: 'resource', resource: { text: 'a', blob: null } }],
      {},
      '[resource: ]\na',
    ],
  ])('are read with %s', async (_what, content, more, is) => {
    expect(await read(content, more)).toEqual({ text: is, isError: false, saved: [] });
  });

  const png = { name: 'image.png', mimeType: 'image/png', bytes: 'fbefff' };
  it.each<[string, object, object]>([
    ['an image in base64url', { type: 'image', data: '--__', mimeType: 'image/png' }, png],
    ['an image as a data URI', { type: 'image', data: 'data:image/png;base64,++//', mimeType: 'image/png' }, png],
    [
      'an image whose data URI has the type',
      { type: 'image', data: 'data:image/png;base64,--__', mimeType: null },
      png,
    ],
    ['a sound without a type', { type: 'audio', data: '++//' }, { name: 'audio', mimeType: null, bytes: 'fbefff' }],
    [
      'a resource as a data URI',
      { type: 'resource', resource: { uri: 'file:///a.gif', blob: 'data:image/gif;base64,++//', mimeType: null } },
      { name: 'a.gif', mimeType: 'image/gif', bytes: 'fbefff' },
    ],
    [
      'a resource in base64url without an address',
      { type: 'resource', resource: { blob: '--__', mimeType: 'application/zip' } },
      { name: 'resource.zip', mimeType: 'application/zip', bytes: 'fbefff' },
    ],
  ])('become a file from %s', async (_what, part, file) => {
    expect((await read([part])).saved).toEqual([file]);
  });
});

describe('checking a result', () => {
  const text = { type: 'text', text: 'x' };
  const audience = Array.from({ length: 40_000 }, () => 0);

  it.each([true, 5])('refuses %j as a list of parts', (content) => {
    expect(() => checkResult({ content })).toThrow('The tool call failed: invalid.');
  });

  it('counts the memory of texts, whatever they are in', () => {
    const counted = [[text], ['x'], [{ text: 'x' }], 'x', text].map((content) => resultBytes(checkResult({ content })));
    expect(counted).toEqual([3, 3, 3, 3, 3]);
  });

  nightTest('takes short turns with all that a result may have', async () => {
    const image = { type: 'image', mimeType: 'image/png', data: 'A'.repeat(3 * MEBIBYTE) };
    const results = [
      { content: Array.from({ length: 5 }, () => image) },
      {
        content: [
          { ...text, annotations: { audience } },
          { ...text, _meta: audience },
        ],
      },
      { content: [{ type: 'resource_link', uri: 'a:b', name: 'a', icons: audience }] },
      { content: [], structuredContent: Object.fromEntries(audience.slice(0, 24_000).map((_, i) => [`key ${i}`, i])) },
    ];
    for (const result of results) {
      await measureTurns(() => readResult(checkResult(result), [], keep));
    }
  });

  it('are cut after 1,000, with the number of the others', () => {
    const { content, isError } = checkResult({ content: Array.from({ length: 1_500 }, () => text) });
    expect(content).toHaveLength(1_001);
    expect(content.at(-1)).toEqual({ type: 'text', text: '[500 more parts were left out: there are too many]' });
    expect(isError).toBeUndefined();
    expect(checkResult({ isError: true })).toEqual({ content: [], isError: true });
  });
});
