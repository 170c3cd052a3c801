import { hash } from 'node:crypto';
import { refusal, type World } from './world.ts';

const BYTES = Buffer.from(Array.from({ length: 1_000 }, (_, i) => i % 256));

/** Range, ETag and names (docs/spec/agent-threads-api.md#get-filesfileidcontent, docs/spec/decisions.md#routes). */
export function describeDownloads(world: World): void {
  describe('GET, HEAD /files/{fileId}/content', () => {
    let path: string;
    let etag: string;
    beforeAll(async () => {
      const { id } = await world.newThread();
      const draft = await world.draft('bytes.bin', BYTES);
      await world.client.post(`/threads/${id}/files`, { fileId: draft.id });
      path = `/files/${draft.id}/content`;
      etag = (await world.client.get(path)).headers.get('etag')!;
    });

    test('the bytes of a ready attachment: 200 application/octet-stream with nosniff', async () => {
      const { status, bytes, headers } = await world.client.get(path);
      expect(status).toBe(200);
      expect(bytes.equals(BYTES)).toBe(true);
      expect(headers.get('content-type')).toBe('application/octet-stream');
      expect(headers.get('x-content-type-options')).toBe('nosniff');
      expect(headers.get('content-length')).toBe('1000');
      expect(headers.get('accept-ranges')).toBe('bytes');
      // Downloads ignore `extended`.
      expect((await world.client.get(`${path}?extended=1`)).status).toBe(200);
    });

    test('always application/octet-stream: the detected type is only in mimeType', async () => {
      const { id } = await world.newThread();
      const page = await world.client.post(`/threads/${id}/files`, {
        name: 'page.html',
        contentType: 'text/html',
        contentBase64: Buffer.from('<script>alert(1)</script>').toString('base64'),
      });
      expect(page.json.file.mimeType).toBe('text/html');
      for (const disposition of ['inline', 'attachment']) {
        const { headers } = await world.client.get(`/files/${page.json.file.id}/content?disposition=${disposition}`);
        expect(headers.get('content-type')).toBe('application/octet-stream');
      }
    });

    test('disposition: attachment by default, inline, else 400', async () => {
      const of = async (query: string) => (await world.client.get(path + query)).headers.get('content-disposition');
      expect(await of('')).toMatch(/^attachment;/);
      expect(await of('?disposition=attachment')).toMatch(/^attachment;/);
      expect(await of('?disposition=inline')).toMatch(/^inline;/);
      expect(refusal(await world.client.get(`${path}?disposition=none`))).toEqual([400, 'invalid_request']);
    });

    test('Content-Disposition: the name as RFC 6266 has it, any Unicode', async () => {
      const { id } = await world.newThread();
      for (const name of ['naïve ключ 😀.txt', 'a "quoted"; b=c.txt', "it's 100%.txt", 'plain.txt']) {
        const { file } = (await world.attach(id, name, 'x')).json;
        const header = (await world.client.get(`/files/${file.id}/content`)).headers.get('content-disposition')!;
        const extended = /filename\*=UTF-8''([^;]+)/i.exec(header)?.[1];
        const quoted =
          /filename="((?:[^"\\]|\\.)*)"/.exec(header)?.[1]?.replaceAll(/\\(.)/g, '$1') ??
          /filename=([^;"]+)/.exec(header)?.[1];
        expect(extended === undefined ? quoted : decodeURIComponent(extended)).toBe(name);
        expect(header).toMatch(/^[\x20-\x7E]+$/);
      }
      const { file } = (await world.attach(id, 'Bericht – März.txt', 'x')).json;
      expect((await world.client.get(`/files/${file.id}/content`)).headers.get('content-disposition')).toBe(
        `attachment; filename="Bericht ? M?rz.txt"; filename*=UTF-8''Bericht%20%E2%80%93%20M%C3%A4rz.txt`,
      );
    });

    test('ETag: the SHA-256 of the bytes, so equal if and only if they are', async () => {
      const { id } = await world.newThread();
      const tagOf = async (name: string, bytes: string): Promise<string | null> => {
        const { file } = (await world.attach(id, name, bytes)).json;
        return (await world.client.get(`/files/${file.id}/content`)).headers.get('etag');
      };
      const tag = await tagOf('a.txt', 'same');
      expect(tag).toBe(`"${hash('sha256', 'same')}"`);
      expect(await tagOf('b.md', 'same')).toBe(tag);
      expect(await tagOf('a.txt', 'Same')).not.toBe(tag);
    });

    test('ETag and If-None-Match: 304 without a body', async () => {
      expect(etag).toMatch(/^"[^"]+"$/);
      for (const header of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
        const { status, bytes, headers } = await world.client.get(path, { headers: { 'if-none-match': header } });
        expect([header, status, bytes.length, headers.get('etag')]).toEqual([header, 304, 0, etag]);
      }
      expect((await world.client.get(path, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
    });

    test.each([
      ['bytes=0-9', 0, 9],
      ['bytes=990-', 990, 999],
      ['bytes=-10', 990, 999],
      ['bytes=500-5000', 500, 999],
      ['bytes=0-0', 0, 0],
      ['bytes=-5000', 0, 999],
    ])('Range: %s is 206 with just these', async (range, first, last) => {
      const { status, bytes, headers } = await world.client.get(path, { headers: { range } });
      expect(status).toBe(206);
      expect(bytes.equals(BYTES.subarray(first, last + 1))).toBe(true);
      expect(headers.get('content-range')).toBe(`bytes ${first}-${last}/1000`);
      expect([headers.get('content-length'), headers.get('etag')]).toEqual([String(last - first + 1), etag]);
      expect(headers.get('content-type')).toBe('application/octet-stream');
    });

    test('Range: several ranges, or another unit, are 200 with all bytes; one past the end is 416', async () => {
      for (const range of ['bytes=0-1,4-5', 'lines=0-1']) {
        const { status, bytes, headers } = await world.client.get(path, { headers: { range } });
        expect([range, status, bytes.equals(BYTES), headers.get('content-range')]).toEqual([range, 200, true, null]);
      }
      const { status, headers } = await world.client.get(path, { headers: { range: 'bytes=1000-' } });
      expect([status, headers.get('content-range')]).toEqual([416, 'bytes */1000']);
    });

    test('If-Range: the range where the tag is that of the bytes, else all of them', async () => {
      const read = async (tag: string) => {
        const headers = { range: 'bytes=1-1', 'if-range': tag };
        const reply = await world.client.get(path, { headers });
        return [reply.status, reply.bytes.length, reply.headers.get('content-range')];
      };
      expect(await read(etag)).toEqual([206, 1, 'bytes 1-1/1000']);
      expect(await read('"old"')).toEqual([200, 1_000, null]);
    });

    test('Range: parts fetched one by one are the whole', async () => {
      const parts: Buffer[] = [];
      for (let at = 0; at < BYTES.length; at += 300) {
        parts.push((await world.client.get(path, { headers: { range: `bytes=${at}-${at + 299}` } })).bytes);
      }
      expect(Buffer.concat(parts).equals(BYTES)).toBe(true);
    });

    test('HEAD: the same status and headers, no body', async () => {
      for (const headers of [{}, { 'if-none-match': etag }]) {
        const get = await world.client.get(path, { headers });
        const head = await world.client.call('HEAD', path, { headers });
        expect([head.status, head.bytes.length]).toEqual([get.status, 0]);
        for (const name of ['content-length', 'content-type', 'content-range', 'content-disposition', 'etag']) {
          expect([name, head.headers.get(name)]).toEqual([name, get.headers.get(name)]);
        }
      }
      expect((await world.client.call('HEAD', '/files/01ARZ3NDEKTSV4RRFFQ69G5FAV/content')).status).toBe(404);
    });

    test.each([
      ['bytes=0-9', {}],
      ['bytes=-1', {}],
      ['bytes=1000-', {}],
      ['bytes=0-9', { 'if-range': '"old"' }],
    ])('HEAD: Range %s is ignored, as RFC 9110 defines it for GET only (%j)', async (range, more) => {
      const { status, headers } = await world.client.call('HEAD', path, { headers: { range, ...more } });
      const told = ['content-length', 'content-range', 'accept-ranges'].map((name) => headers.get(name));
      expect([status, ...told]).toEqual([200, '1000', null, 'bytes']);
    });

    test('If-Match: other bytes are 412 idempotency_conflict, before 304 and 416; a strong tag or * passes', async () => {
      for (const header of ['"other"', `W/${etag}`]) {
        const headers = { 'if-match': header, 'if-none-match': etag, range: 'bytes=5000-' };
        const reply = await world.client.get(path, { headers });
        expect([header, ...refusal(reply), reply.headers.get('etag')]).toEqual([
          header,
          412,
          'idempotency_conflict',
          etag,
        ]);
        expect((await world.client.call('HEAD', path, { headers })).status).toBe(412);
      }
      for (const header of [etag, `"other", ${etag}`, '*']) {
        expect((await world.client.get(path, { headers: { 'if-match': header } })).status).toBe(200);
      }
    });

    test('If-Match on DELETE: 412 and the file stays; else it goes', async () => {
      const { id } = await world.newThread();
      const { file } = (await world.attach(id, 'a.txt', 'a')).json;
      const tag = (await world.client.get(`/files/${file.id}/content`)).headers.get('etag')!;
      for (const target of [`/files/${file.id}`, `/threads/${id}/files/${file.id}`]) {
        const reply = await world.client.delete(target, { headers: { 'if-match': '"other"' } });
        expect(refusal(reply)).toEqual([412, 'idempotency_conflict']);
      }
      const headers = { 'if-match': tag };
      expect((await world.client.delete(`/threads/${id}/files/${file.id}`, { headers })).status).toBe(200);
    });

    test('a draft’s content is 404', async () => {
      const draft = await world.draft('d.txt');
      for (const method of ['GET', 'HEAD'] as const) {
        expect((await world.client.call(method, `/files/${draft.id}/content`)).status).toBe(404);
      }
      expect((await world.client.get(`/files/${draft.id}/content`)).code).toBe('not_found');
    });

    test('an empty file: 200 without bytes', async () => {
      const { id } = await world.newThread();
      const { file } = (await world.attach(id, 'empty', '')).json;
      const { status, bytes } = await world.client.get(`/files/${file.id}/content`);
      expect([status, bytes.length]).toEqual([200, 0]);
    });

    test('the file must belong to a Thread visible to the caller', async () => {
      const other = world.as((await world.newPerson()).token);
      expect(refusal(await other.get(path))).toEqual([404, 'not_found']);
    });
  });
}
