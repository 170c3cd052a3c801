import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { BlobMissing, BlobTooLarge, newBlobKey, type BlobSource, type BlobStore } from './blob-store.ts';

/** Defines the tests that every blob store must pass. The spec of each store calls it. */
export function describeBlobStore(name: string, make: () => Promise<BlobStore>): void {
  describe(`${name} as a blob store`, () => {
    let store: BlobStore;
    beforeEach(async () => {
      store = await make();
    });

    const put = async (source: BlobSource) => {
      const key = newBlobKey();
      return { key, ...(await store.put(key, source)) };
    };

    it('returns the bytes, their size and their hash', async () => {
      const bytes = Buffer.from('naïve bytes \0 of any kind');
      const blob = await put(bytes);
      expect(blob.size).toBe(bytes.byteLength);
      expect(blob.sha256).toBe(createHash('sha256').update(bytes).digest('hex'));
      expect(await readAll(store, blob.key)).toEqual(bytes);
    });

    it('keeps an empty blob', async () => {
      const { key, size } = await put(new Uint8Array());
      expect(size).toBe(0);
      expect(await readAll(store, key)).toHaveLength(0);
    });

    it('stores a source of many chunks', async () => {
      const chunk = Buffer.alloc(100_000, 7);
      const blob = await put(repeat(chunk, 30));
      expect(blob.size).toBe(3_000_000);
      // Not toEqual, which takes seconds for so many bytes.
      expect((await readAll(store, blob.key)).equals(Buffer.alloc(3_000_000, 7))).toBe(true);
    });

    it('stores equal bytes twice, so that a deletion of one keeps the other', async () => {
      const [a, b] = [await put(Buffer.from('same')), await put(Buffer.from('same'))];
      await store.delete(a.key);
      expect((await readAll(store, b.key)).toString()).toBe('same');
    });

    it('reads a range, both ends inclusive', async () => {
      const { key } = await put(Buffer.from('0123456789'));
      expect((await readAll(store, key, { start: 2, end: 5 })).toString()).toBe('2345');
    });

    it('keeps nothing of a source that is too large', async () => {
      const key = newBlobKey();
      await expect(store.put(key, repeat(Buffer.alloc(10), 3), { maxBytes: 29 })).rejects.toThrow(BlobTooLarge);
      await expect(store.get(key)).rejects.toThrow(BlobMissing);
      expect((await store.put(key, repeat(Buffer.alloc(10), 3), { maxBytes: 30 })).size).toBe(30);
    });

    it('throws the error of its source, and keeps nothing of it', async () => {
      const key = newBlobKey();
      const failing = async function* (): AsyncGenerator<Uint8Array> {
        yield Buffer.from('half');
        await Promise.reject(new Error('the upload was cut off'));
      };
      await expect(store.put(key, failing())).rejects.toThrow('the upload was cut off');
      await expect(store.get(key)).rejects.toThrow(BlobMissing);
    });

    it('knows the size of a blob without reading it', async () => {
      const { key } = await put(Buffer.from('0123456789'));
      expect(await store.size(key)).toBe(10);
      expect(await store.size((await put(new Uint8Array())).key)).toBe(0);
      await store.delete(key);
      await expect(store.size(key)).rejects.toThrow(BlobMissing);
    });

    it('deletes a blob, and accepts a second deletion', async () => {
      const { key } = await put(Buffer.from('gone'));
      await store.delete(key);
      await store.delete(key);
      await expect(store.get(key)).rejects.toThrow(BlobMissing);
    });

    it.each(['', '../secret', 'ab/../../secret', '/etc/passwd', 'ab/' + '0'.repeat(29) + '\0'])(
      'finds nothing under %j, which is no key',
      async (key) => {
        await expect(store.get(key)).rejects.toThrow(BlobMissing);
        await expect(store.size(key)).rejects.toThrow(BlobMissing);
        await store.delete(key);
      },
    );
  });
}

async function readAll(store: BlobStore, key: string, range?: { start: number; end: number }): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  const bytes: Readable = await store.get(key, range);
  for await (const chunk of bytes) chunks.push(chunk as Uint8Array);
  return Buffer.concat(chunks);
}

async function* repeat(chunk: Uint8Array, times: number): AsyncGenerator<Uint8Array> {
  for (let i = 0; i < times; i++) yield await Promise.resolve(chunk);
}
