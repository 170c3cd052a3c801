import { createHash } from 'node:crypto';
import { text } from 'node:stream/consumers';
import { eventually, faultProxy, type FaultProxy, type S3Server, startS3Server } from '#testing';
import { BlobMissing, BlobStoreUnavailable, BlobTooLarge, newBlobKey } from './blob-store.ts';
import { describeBlobStore } from './blob-store.testsuite.ts';
import { openBlobStore } from './open-blob-store.ts';
import { S3BlobStore } from './s3-blob-store.ts';

const MEBIBYTE = 1024 * 1024;
const PART = 5 * MEBIBYTE;
/** For stores whose storage will be silent. Too short for a part of 5 MiB on a busy machine. */
const ATTEMPT_MS = 400;

let server: S3Server;
let proxy: FaultProxy;

beforeAll(async () => {
  server = await startS3Server();
  proxy = await faultProxy(server.port);
});

afterAll(async () => {
  await proxy.close();
  await server.stop();
});

afterEach(() => proxy.resume());

const open = () => openBlobStore({ BLOB_URL: server.blobUrl(), DATA_DIR: '' }, () => Promise.resolve(true));
const openThroughProxy = (attemptMs?: number) => new S3BlobStore(server.blobUrl(proxy.port), attemptMs);

describeBlobStore('a bucket', open);

describe('S3BlobStore', () => {
  it('shows a pod what another pod has stored and deleted', async () => {
    const [here, there] = [await open(), await open()];
    const key = newBlobKey();
    await here.put(key, Buffer.from('shared'));
    expect(await text(await there.get(key))).toBe('shared');
    await there.delete(key);
    await expect(here.get(key)).rejects.toThrow(BlobMissing);
  });

  it('uses only its folder of the bucket', async () => {
    const key = newBlobKey();
    const [here, elsewhere] = [await open(), new S3BlobStore(server.blobUrl().replace('/some/folder', ''))];
    await here.put(key, Buffer.from('here'));
    await elsewhere.delete(key);
    expect(await text(await here.get(key))).toBe('here');
    await expect(elsewhere.get(key)).rejects.toThrow(BlobMissing);
  });

  it('stores 20 MiB with one part of memory, and returns them', async () => {
    const store = await open();
    const key = newBlobKey();
    const before = server.receivedBytes();
    let taken = 0;
    let mostHeld = 0;
    const hash = createHash('sha256');
    const source = async function* (): AsyncGenerator<Uint8Array> {
      for (let i = 0; i < 320; i++) {
        const chunk = Buffer.alloc(64 * 1024 + (i % 7), i);
        hash.update(chunk);
        mostHeld = Math.max(mostHeld, taken - (server.receivedBytes() - before));
        taken += chunk.byteLength;
        yield await Promise.resolve(chunk);
      }
    };
    const { size, sha256 } = await store.put(key, source());
    expect({ size, sha256 }).toEqual({ size: taken, sha256: hash.digest('hex') });
    expect(mostHeld).toBeLessThanOrEqual(PART + 64 * 1024 + 7);
    expect(await hashOf(await store.get(key))).toEqual({ size, sha256 });
    expect(await hashOf(await store.get(key, { start: PART - 1, end: PART }))).toMatchObject({ size: 2 });
    expect(server.openUploads()).toEqual([]);
  });

  it.each([PART - 1, PART, PART + 1, 2 * PART])('stores %d bytes, whole or in parts', async (length) => {
    const store = await open();
    const bytes = Buffer.alloc(length, 'spool');
    const key = newBlobKey();
    const stored = await store.put(key, bytes);
    expect(await hashOf(await store.get(key))).toEqual(stored);
    expect(stored).toEqual({ size: length, sha256: createHash('sha256').update(bytes).digest('hex') });
  });
});

describe('S3BlobStore, interrupted during a put', () => {
  it('leaves no parts of a source that is too large, and stores one at the limit', async () => {
    const store = await open();
    const key = newBlobKey();
    await expect(store.put(key, mebibytes(11), { maxBytes: 11 * MEBIBYTE - 1 })).rejects.toThrow(BlobTooLarge);
    expect(server.openUploads()).toEqual([]);
    await expect(store.get(key)).rejects.toThrow(BlobMissing);
    expect((await store.put(key, mebibytes(11), { maxBytes: 11 * MEBIBYTE })).size).toBe(11 * MEBIBYTE);
  });

  it('leaves no parts of a source that throws', async () => {
    const before = server.receivedBytes();
    const put = (await open()).put(
      newBlobKey(),
      mebibytes(11, (sent) => {
        if (sent === 10) throw new Error('the upload was cut off');
      }),
    );
    await expect(put).rejects.toThrow('the upload was cut off');
    expect(server.receivedBytes() - before).toBe(PART); // The first part was sent.
    expect(server.openUploads()).toEqual([]);
  });

  it('leaves parts that any pod deletes with the key', async () => {
    const [key, other] = [newBlobKey(), newBlobKey()];
    const put = (name: string) =>
      openThroughProxy().put(
        name,
        mebibytes(11, (sent) => {
          if (sent === 8) proxy.cut();
        }),
      );
    await expect(put(key)).rejects.toThrow(BlobStoreUnavailable);
    proxy.resume();
    await expect(put(other)).rejects.toThrow(BlobStoreUnavailable);
    expect(server.openUploads()).toEqual([`some/folder/${key}`, `some/folder/${other}`]);
    await (await open()).delete(key);
    expect(server.openUploads()).toEqual([`some/folder/${other}`]);
    await (await open()).delete(other);
    expect(server.openUploads()).toEqual([]);
  });
});

describe('S3BlobStore with a storage that fails', () => {
  const operations: Record<string, (store: S3BlobStore) => Promise<unknown>> = {
    'a put': (store) => store.put(newBlobKey(), Buffer.from('bytes')),
    'a put of parts': (store) => store.put(newBlobKey(), mebibytes(6)),
    'a get': (store) => store.get(newBlobKey()),
    'a size': (store) => store.size(newBlobKey()),
    'a delete': (store) => store.delete(newBlobKey()),
  };
  const names = Object.keys(operations);

  describe.each(names)('%s', (name) => {
    it.each([
      ['nothing answers', () => proxy.stall()],
      ['connections are refused', () => proxy.cut()],
    ])('fails while %s', async (_what, fail) => {
      fail();
      await expect(operations[name]!(openThroughProxy(ATTEMPT_MS))).rejects.toThrow(BlobStoreUnavailable);
    });
  });

  it('is unavailable if there is no such bucket', async () => {
    const store = new S3BlobStore(server.blobUrl().replace('spool-test', 'no-bucket'));
    for (const name of names.slice(0, 4)) await expect(operations[name]!(store)).rejects.toThrow(BlobStoreUnavailable);
  });

  const failsReader = async (): Promise<void> => {
    const key = newBlobKey();
    await (await open()).put(key, mebibytes(20));
    const store = openThroughProxy(ATTEMPT_MS);
    for (const fault of ['stall', 'reset'] as const) {
      const reader = await store.get(key);
      const read = async () => {
        for await (const _ of reader) proxy[fault]();
      };
      await expect(read()).rejects.toThrow(BlobStoreUnavailable);
      proxy.resume();
    }
  };
  it('fails the reader if the storage falls silent or breaks off', failsReader, 30_000);

  it('waits for a slow reader', async () => {
    const key = newBlobKey();
    const stored = await (await open()).put(key, mebibytes(6));
    // A pause of the machine must not look like silence.
    const attemptMs = 4 * ATTEMPT_MS;
    const store = openThroughProxy(attemptMs);
    const readSlowly = async (range?: { start: number; end: number }): Promise<number> => {
      const reader = await store.get(key, range);
      const start = performance.now();
      await eventually(() => performance.now() - start > 2 * attemptMs, { what: 'time passes' });
      return (await hashOf(reader)).size;
    };
    const ranges = [undefined, { start: 0, end: stored.size - 1 }, { start: 0, end: 9_999 }];
    expect(await Promise.all(ranges.map(readSlowly))).toEqual([stored.size, stored.size, 10_000]);
  });

  it('stores the blob despite a lost answer, or leaves nothing', async () => {
    const store = openThroughProxy();
    const [single, begun, completed] = [newBlobKey(), newBlobKey(), newBlobKey()];
    const dropped = [proxy.dropNextAnswer((request) => request.includes(single))];
    await store.put(single, Buffer.from('bytes'));
    expect(await text(await store.get(single))).toBe('bytes');

    dropped.push(proxy.dropNextAnswer((request) => request.includes('?uploads')));
    const { size } = await store.put(begun, mebibytes(6));
    expect(await hashOf(await store.get(begun))).toMatchObject({ size });
    await store.delete(begun);

    dropped.push(proxy.dropNextAnswer((request) => /^POST .*uploadId=/.test(request.toString('latin1'))));
    await expect(store.put(completed, mebibytes(6))).rejects.toThrow(BlobStoreUnavailable);
    await expect(store.get(completed)).rejects.toThrow(BlobMissing);
    expect(server.openUploads()).toEqual([]);
    await Promise.all(dropped);
  });
});

async function* mebibytes(count: number, onSent: (sent: number) => void = () => undefined): AsyncGenerator<Uint8Array> {
  for (let sent = 0; sent < count; sent++) {
    onSent(sent);
    yield await Promise.resolve(Buffer.alloc(MEBIBYTE, sent));
  }
}

async function hashOf(bytes: AsyncIterable<Uint8Array>): Promise<{ size: number; sha256: string }> {
  const hash = createHash('sha256');
  let size = 0;
  for await (const chunk of bytes) {
    size += chunk.byteLength;
    hash.update(chunk);
  }
  return { size, sha256: hash.digest('hex') };
}
