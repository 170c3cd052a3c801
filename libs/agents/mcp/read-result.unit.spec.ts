import { measureTurns, nightTest } from '#testing';
import { checkResult, readResult } from './read-result.ts';

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
      ...Array<string>(3).fill('[a file that is not kept: there are too many]'),
      'the end',
    ]);
  });
});

describe('checking a result', () => {
  const text = { type: 'text', text: 'x' };
  const audience = Array.from({ length: 40_000 }, () => 0);

  it.each<[string, object, object]>([
    ['24,000 blocks that are none', { content: Array.from({ length: 24_000 }, () => ({})) }, { code: 'invalid_union' }],
    ['no list of blocks', { content: {} }, { code: 'invalid_type', path: ['content'] }],
    ['an unknown block', { content: [text, { type: 'toString' }] }, { code: 'invalid_union' }],
    ['null', { content: [null] }, { code: 'invalid_union' }],
    ['an image without base64', { content: [{ type: 'image', mimeType: 'image/png', data: '%' }] }, { path: ['data'] }],
  ])('stops at the first part that does not fit: %s', async (_what, result, issue) => {
    await measureTurns(async () => {
      await expect(checkResult({ ...result })).rejects.toMatchObject({ issues: [issue] });
    });
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
      await measureTurns(() => checkResult(result));
    }
  });

  it('keeps 1,000 blocks, and says how many more there were', async () => {
    const { content, isError } = await checkResult({ content: Array.from({ length: 1_500 }, () => text) });
    expect(content).toHaveLength(1_001);
    expect(content.at(-1)).toEqual({ type: 'text', text: '[500 parts are not kept: there are too many]' });
    expect(isError).toBeUndefined();
    expect(await checkResult({ isError: true })).toEqual({ content: [], isError: true });
  });
});
