import { readResult } from './read-result.ts';

describe('a result of a tool server', () => {
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
