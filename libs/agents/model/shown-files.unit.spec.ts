import { Readable } from 'node:stream';
import { FileRefused, type FolderFile, type TranscriptMessage } from '../harness.ts';
import { bytesOf, filesOf } from './provider.testing.ts';
import { readImages, shownImages, describeFiles } from './shown-files.ts';

const MIB = 1024 * 1024;

function file(fileId: string, path: string, mimeType: string | null = 'image/png', size = 1_234): FolderFile {
  return { fileId, path, mimeType, size, readOnly: true };
}
const byId = (...files: FolderFile[]) => new Map(files.map((one) => [one.fileId, one]));
const user = (text: string, ...fileIds: string[]): TranscriptMessage => ({ role: 'user', text, fileIds });
const tool = (...fileIds: string[]): TranscriptMessage => ({
  role: 'tool',
  toolCallId: 'call',
  toolName: 'look',
  outcome: 'ok',
  result: '',
  fileIds,
});

describe('what the model is told of files', () => {
  it('is a line behind the message that they came with, by the paths that tools know', () => {
    const files = byId(file('a', 'attachments/data.csv', 'text/csv'), file('b', 'attachments/x', null, 0));
    const told = describeFiles([user('Look', 'a', 'gone', 'b'), user('And?')], files);
    expect(told[0]).toMatchObject({
      text: [
        'Look',
        'Attached file: attachments/data.csv (text/csv, 1,234 bytes)',
        'Attached file: attachments/x (of unknown type, 0 bytes)',
      ].join('\n'),
    });
    expect(told[1]).toEqual(user('And?'));
  });

  it('tells of attachments that no message names with the last message', () => {
    const files = byId(
      file('a', 'attachments/a.png'),
      file('b', 'attachments/b.png'),
      file('c', 'artifacts/c.png'),
      file('d', 'notes.png'),
    );
    const told = describeFiles([user('One', 'a'), user('Two'), tool('c')], files);
    expect(told[1]).toMatchObject({ fileIds: ['b'] });
    expect(JSON.stringify(told).match(/Attached file/g)).toHaveLength(2);
  });
});

describe('the images that the model is shown', () => {
  it('are of the types and sizes that providers take', () => {
    const files = byId(
      ...['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/svg+xml', null].map((type, i) =>
        file(`${i}`, `${i}`, type),
      ),
      file('large', 'large', 'image/png', 5 * MIB),
      file('too-large', 'too-large', 'image/png', 5 * MIB + 1),
    );
    const named = [user('', ...files.keys())];
    expect([...shownImages(named, files, 'openai-compatible')]).toEqual(['0', '1', '2', '3', 'large']);
    // Which counts them in base64.
    expect([...shownImages(named, files, 'anthropic')]).toEqual(['0', '1', '2', '3']);
  });

  it('are the newest, as many as a call may have', () => {
    const many = byId(...Array.from({ length: 25 }, (_, i) => file(`${i}`, `${i}`)));
    const shown = shownImages([user('', '0'), tool(...[...many.keys()].slice(1))], many, 'anthropic');
    expect(shown.size).toBe(20);
    expect(shown).not.toContain('0');
    const large = byId(...Array.from({ length: 10 }, (_, i) => file(`${i}`, `${i}`, 'image/png', 3 * MIB)));
    expect(shownImages([user('', ...large.keys())], large, 'anthropic').size).toBe(6);
  });

  it('are read where a message that is left names them, once each', async () => {
    const files = byId(file('a', 'a.png'), file('b', 'b.png'));
    const folder = filesOf([]);
    const read = jest.fn((one: FolderFile) => folder.read(one));
    const { signal } = new AbortController();
    const images = await readImages([user('', 'a'), tool('a', 'gone')], new Set(['a', 'b']), { files, read, signal });
    expect([...images]).toEqual([['a', { path: 'a.png', mediaType: 'image/gif', bytes: bytesOf('a') }]]);
    expect(read).toHaveBeenCalledTimes(1);
  });

  it('are left out where their bytes are lost, and no other failure is passed over', async () => {
    const files = byId(file('a', 'a.png'), file('b', 'b.png'));
    const good = Buffer.from('GIF87a');
    const read = ({ fileId }: FolderFile) =>
      fileId === 'a' ? Promise.reject(new FileRefused('lost')) : Promise.resolve(Readable.from([good]));
    const parts = { files, read, signal: new AbortController().signal };
    const images = await readImages([user('', 'a', 'b')], new Set(['a', 'b']), parts);
    expect([...images.keys()]).toEqual(['b']);
    const away = { ...parts, read: () => Promise.reject(new Error('away')) };
    await expect(readImages([user('', 'a')], new Set(['a']), away)).rejects.toThrow('away');
  });

  it.each([
    ['image/png', '\x89PNG\r\n\x1a\nx'],
    ['image/jpeg', '\xff\xd8\xff\xe0'],
    ['image/gif', 'GIF87a'],
    ['image/webp', 'RIFF\x01\n\x00\x00WEBPVP8 '],
    [null, 'RIFF\x01\n\x00\x00WAVEfmt '],
    [null, 'no image'],
    [null, ''],
  ])('are %s by their bytes, whatever their files are called', async (mediaType, text) => {
    const bytes = Buffer.from(text, 'latin1');
    const read = () => Promise.resolve(Readable.from([bytes]));
    const parts = { files: byId(file('a', 'a.png')), read, signal: new AbortController().signal };
    const images = await readImages([user('', 'a')], new Set(['a']), parts);
    expect([...images.values()]).toEqual(mediaType === null ? [] : [{ path: 'a.png', mediaType, bytes }]);
  });
});
