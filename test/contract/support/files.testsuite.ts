import { eventually } from '#testing';
import type { FileRecord } from './client.ts';
import { DATE_TIME, refusal, ULID, UNKNOWN, userMessage, type World } from './world.ts';

/** The smallest PNG: what a file is, is told by its bytes. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);

/**
 * Files: drafts, both ways to attach one, resources of messages, artifacts, deletion
 * (docs/spec/agent-threads-api.md#endpoints, docs/spec/decisions.md#routes, docs/spec/decisions.md#resources, docs/spec/decisions.md#limits).
 */
export function describeFiles(world: World): void {
  describe('files', () => {
    describe('POST /agents/{agentId}/files', () => {
      test('Public file: multipart, one part named file: 201 {file: {id, name, mimeType, size, createdAt}}', async () => {
        const { status, json } = await world.upload('order.txt', 'seven boxes');
        expect(status).toBe(201);
        expect(json.file).toEqual({
          id: expect.stringMatching(ULID) as string,
          name: 'order.txt',
          mimeType: 'text/plain',
          size: 11,
          createdAt: expect.stringMatching(DATE_TIME) as string,
        });
        const { json: read } = await world.client.get(`/files/${json.file.id}`);
        expect(read).toEqual(json);
      });

      test('name: the original file name without its folder, any Unicode', async () => {
        for (const name of ['naïve ключ 😀.txt', 'a b (1);.txt', "o'neil.txt", '100%.txt']) {
          for (const folder of ['', 'dir/']) {
            expect((await world.upload(folder + name, 'x')).json.file.name).toBe(name);
          }
        }
      });

      test('mimeType: detected from the bytes, then the name; null where neither tells', async () => {
        const types = await Promise.all([
          world.upload('not-a-text.txt', PNG),
          world.upload('data.json', '{}'),
          world.upload('empty.txt', ''),
          world.upload('nothing-known', 'x'),
        ]);
        expect(types.map(({ json }) => json.file.mimeType)).toEqual([
          'image/png',
          'application/json',
          'text/plain',
          null,
        ]);
      });

      test('size: bytes, 0 too', async () => {
        for (const bytes of ['', '😀', 'x'.repeat(100_000)]) {
          expect((await world.upload('f', bytes)).json.file.size).toBe(Buffer.byteLength(bytes));
        }
      });

      test.each([
        ['no part', []],
        ['a part of another name', ['attachment']],
        ['two parts', ['file', 'file']],
        ['a further part', ['file', 'other']],
      ])('%s is 400 invalid_request, and nothing is kept', async (_, names) => {
        const before = await world.rowCounts();
        const body = new FormData();
        const canary = `refused-upload-${world.backend}-${names.join('-')}`;
        for (const name of names) body.append(name, new File([canary], 'f.txt'));
        const reply = await world.client.post(`/agents/${world.agentId}/files`, undefined, { body });
        expect(refusal(reply)).toEqual([400, 'invalid_request']);
        expect(await world.rowCounts()).toEqual(before);
        await eventually(async () => (await world.blobsWith(canary)) === 0, { what: 'no bytes are left' });
      });

      test('a field that is no file is 400', async () => {
        const body = new FormData();
        body.append('file', 'just text');
        expect(refusal(await world.client.post(`/agents/${world.agentId}/files`, undefined, { body }))).toEqual([
          400,
          'invalid_request',
        ]);
      });

      test('another content type is 415 invalid_request', async () => {
        const reply = await world.client.post(`/agents/${world.agentId}/files`, { file: 'x' });
        expect(refusal(reply)).toEqual([415, 'invalid_request']);
      });

      test('multipart that cannot be read is 400', async () => {
        const headers = { 'content-type': 'multipart/form-data; boundary=b' };
        for (const body of [
          '',
          'nonsense',
          '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nabc',
        ]) {
          const reply = await world.client.post(`/agents/${world.agentId}/files`, undefined, { body, headers });
          expect(refusal(reply)).toEqual([400, 'invalid_request']);
        }
      });
    });

    describe('GET, DELETE /files/{fileId}', () => {
      test('DELETE: a file uploaded before any Thread existed: {ok: true}, then 404; its bytes go', async () => {
        const canary = `deleted-draft-${world.backend}`;
        const { id } = await world.draft('d.txt', canary);
        expect(await world.blobsWith(canary)).toBe(1);
        const { status, json } = await world.client.delete(`/files/${id}`);
        expect([status, json]).toEqual([200, { ok: true }]);
        for (const reply of [await world.client.get(`/files/${id}`), await world.client.delete(`/files/${id}`)]) {
          expect(refusal(reply)).toEqual([404, 'not_found']);
        }
        await eventually(async () => (await world.blobsWith(canary)) === 0, { what: 'its bytes are gone' });
      });

      test('DELETE: a file attached to a Thread visible to the caller: {ok: true}; the Thread has it no more', async () => {
        const canary = `deleted-attachment-${world.backend}`;
        const { id } = await world.newThread();
        const { file } = (await world.attach(id, 'a.txt', canary)).json;
        expect((await world.client.delete(`/files/${file.id}`)).json).toEqual({ ok: true });
        expect(await world.files(id)).toEqual([]);
        expect(refusal(await world.client.get(`/files/${file.id}/content`))).toEqual([404, 'not_found']);
        const last = (await world.log(id)).at(-1)!;
        expect([last.type, last.content]).toEqual(['session_files.updated', file.id]);
        await eventually(async () => (await world.blobsWith(canary)) === 0, { what: 'its bytes are gone' });
      });

      test('in lower case too; one that is no ULID is 400, an unknown one 404', async () => {
        const { id } = await world.draft('d.txt');
        expect((await world.client.get(`/files/${id.toLowerCase()}`)).json.file.id).toBe(id);
        expect(refusal(await world.client.get('/files/x'))).toEqual([400, 'invalid_request']);
        expect(refusal(await world.client.get(`/files/${UNKNOWN}`))).toEqual([404, 'not_found']);
        expect(refusal(await world.client.delete(`/files/${UNKNOWN}`))).toEqual([404, 'not_found']);
      });
    });

    describe('POST /threads/{threadId}/files', () => {
      const expectAttached = (file: FileRecord, fields: object) =>
        expect(file).toEqual({
          id: expect.stringMatching(ULID) as string,
          createdAt: expect.stringMatching(DATE_TIME) as string,
          kind: 'attachment',
          committed: true,
          ...fields,
        });

      test('Thread file, inline content: name, contentType, contentBase64; 201 {file}', async () => {
        const { id } = await world.newThread();
        const { status, json } = await world.attach(id, 'ключ.txt', 'inline bytes');
        expect([status, Object.keys(json)]).toEqual([201, ['file']]);
        expectAttached(json.file, { name: 'ключ.txt', mimeType: 'text/plain', size: 12 });
        expect(await world.files(id)).toEqual([json.file]);
        expect((await world.client.get(`/files/${json.file.id}/content`)).text).toBe('inline bytes');
      });

      test('declare a draft: fileId; kind attachment, committed true from then on', async () => {
        const { id } = await world.newThread();
        const draft = (await world.upload('order.txt', 'seven')).json.file;
        const { status, json } = await world.client.post(`/threads/${id}/files`, { fileId: draft.id.toLowerCase() });
        expect(status).toBe(201);
        expect(json.file).toEqual({ ...draft, kind: 'attachment', committed: true });
        expect(await world.files(id)).toEqual([json.file]);
        expect((await world.client.get(`/files/${draft.id}/content`)).text).toBe('seven');
      });

      test('session_files.updated: the id of the file attached', async () => {
        const { id } = await world.newThread();
        const { file } = (await world.attach(id, 'a', 'a')).json;
        expect(await world.log(id)).toMatchObject([{ type: 'session_files.updated', content: file.id }]);
      });

      test.each([
        ['nothing', {}],
        ['a fileId that is no ULID', { fileId: 'x' }],
        ['a fileId longer than 26', { fileId: `${UNKNOWN}0` }],
        ['no name', { contentType: 'text/plain', contentBase64: '' }],
        ['no contentType', { name: 'a', contentBase64: '' }],
        ['no contentBase64', { name: 'a', contentType: 'text/plain' }],
        ['what is not base64', { name: 'a', contentType: 'text/plain', contentBase64: '*' }],
        ['both shapes', { fileId: UNKNOWN, name: 'a', contentType: 'text/plain', contentBase64: '' }],
        ['an additional property', { name: 'a', contentType: 'text/plain', contentBase64: '', x: 1 }],
        ['NUL in the name', { name: 'a\0', contentType: 'text/plain', contentBase64: '' }],
      ])('%s is 400 invalid_request', async (_, body) => {
        const { id } = await world.newThread();
        expect(refusal(await world.client.post(`/threads/${id}/files`, body))).toEqual([400, 'invalid_request']);
        expect(await world.files(id)).toEqual([]);
      });

      test('the message of a refusal names the field and what it must be', async () => {
        const { id } = await world.newThread();
        for (const [body, text] of [
          [{ name: 'a', contentType: 'text/plain', contentBase64: '@@@@' }, 'contentBase64: must be base64'],
          [{ fileId: 'x' }, 'ULID'],
        ] as const) {
          const { json } = await world.client.post(`/threads/${id}/files`, body);
          expect(json.error.message).toContain(text);
        }
      });

      test('a draft that is unknown, another caller’s or no longer one is refused, and nothing changes', async () => {
        const { id } = await world.newThread();
        const other = world.as((await world.newPerson()).token);
        const theirs = await world.draft('t.txt', 't', { client: other });
        const used = await world.draft('u.txt');
        await world.client.post(`/threads/${(await world.newThread()).id}/files`, { fileId: used.id });
        for (const fileId of [UNKNOWN, theirs.id, used.id]) {
          const { status, text } = await world.client.post(`/threads/${id}/files`, { fileId });
          expect([400, 404, 409]).toContain(status);
          if (fileId === theirs.id)
            expect(text.replaceAll(theirs.id, UNKNOWN)).toBe(
              (await world.client.post(`/threads/${id}/files`, { fileId: UNKNOWN })).text,
            );
        }
        expect(await world.files(id)).toEqual([]);
        expect((await other.get(`/files/${theirs.id}`)).status).toBe(200);
      });
    });

    describe('GET /threads/{threadId}/files, DELETE …/files/{fileId}', () => {
      test('GET: 200 {files}: attachments and artifacts', async () => {
        const { thread } = await world.endedThread({ text: '/artifact made by the agent' });
        const { file } = (await world.attach(thread.id, 'a.txt', 'a')).json;
        const files = await world.files(thread.id);
        expect(files).toContainEqual(file);
        const artifact = files.find(({ kind }) => kind === 'artifact')!;
        expect(artifact).toMatchObject({ name: 'echo.txt', mimeType: 'text/plain', committed: true });
        expect((await world.client.get(`/files/${artifact.id}/content`)).text).toBe('made by the agent');
        expect(files).toHaveLength(2);
      });

      test('an empty Thread: {files: []}', async () => {
        const { id } = await world.newThread();
        expect((await world.client.get(`/threads/${id}/files`)).json).toEqual({ files: [] });
      });

      test('DELETE: detaches and deletes, {ok: true}; session_files.updated says so', async () => {
        const { id } = await world.newThread();
        const { file } = (await world.attach(id, 'a', 'a')).json;
        const { status, json } = await world.client.delete(`/threads/${id}/files/${file.id}`);
        expect([status, json]).toEqual([200, { ok: true }]);
        expect(await world.files(id)).toEqual([]);
        for (const path of [`/files/${file.id}`, `/files/${file.id}/content`]) {
          expect(refusal(await world.client.get(path))).toEqual([404, 'not_found']);
        }
        expect((await world.log(id)).map(({ type, content }) => [type, content])).toEqual([
          ['session_files.updated', file.id],
          ['session_files.updated', file.id],
        ]);
      });

      test('DELETE: a file of another Thread, a draft, or none is 404', async () => {
        const [here, there] = [await world.newThread(), await world.newThread()];
        const { file } = (await world.attach(there.id, 'a', 'a')).json;
        const draft = await world.draft('d');
        for (const fileId of [file.id, draft.id, UNKNOWN]) {
          expect(refusal(await world.client.delete(`/threads/${here.id}/files/${fileId}`))).toEqual([404, 'not_found']);
        }
        expect(await world.files(there.id)).toEqual([file]);
      });
    });

    describe('FileResource: resources of a message', () => {
      test('of create-thread: mounted into the first Run, attached to the Thread in the same commit', async () => {
        const [one, two] = [await world.draft('one.txt'), await world.draft('two.txt')];
        const thread = await world.newThread({ text: 'see', resources: [one.resource, two.resource] });
        const files = await world.files(thread.id);
        expect(files.map(({ id }) => id).toSorted()).toEqual([one.id, two.id].toSorted());
        for (const file of files) expect(file).toMatchObject({ kind: 'attachment', committed: true });
      });

      test('of a Thread without input: attached at once', async () => {
        const one = await world.draft('one.txt');
        const thread = await world.newThread({ resources: [one.resource] });
        expect((await world.files(thread.id)).map(({ id }) => id)).toEqual([one.id]);
      });

      test('of user_message: ready drafts of the same caller, attached with the message', async () => {
        const thread = await world.newThread();
        const one = await world.draft('one.txt');
        const { status } = await world.send(thread.id, userMessage('see', { resources: [one.resource] }));
        expect(status).toBe(200);
        expect((await world.files(thread.id)).map(({ id }) => id)).toEqual([one.id]);
        expect(await world.log(thread.id)).toContainEqual(
          expect.objectContaining({ type: 'session_files.updated', content: one.id }),
        );
      });

      test('a draft belongs to the person: uploaded with another of their tokens it is theirs too', async () => {
        const { token } = await world.mintFor(world.owner.personId);
        const one = await world.draft('one.txt', 'one', { client: world.as(token) });
        expect((await world.create({ text: 'see', resources: [one.resource] })).status).toBe(201);
      });

      test.each([
        ['type: constant file', { type: 'url', file_id: UNKNOWN }],
        ['type: required', { file_id: UNKNOWN }],
        ['file_id: required', { type: 'file' }],
        ['file_id: ulid', { type: 'file', file_id: 'x' }],
        ['file_id: length 1..26', { type: 'file', file_id: '' }],
        ['no additional properties', { type: 'file', file_id: UNKNOWN, mount: '/' }],
      ])('%s, else 400', async (_, resource) => {
        expect(refusal(await world.create({ text: 'see', resources: [resource] }))).toEqual([400, 'invalid_request']);
      });

      const wrongs = async (): Promise<[string, string][]> => {
        const other = world.as((await world.newPerson()).token);
        const service = world.as((await world.mintService([world.agentId])).token);
        const otherAgent = await world.newAgent();
        const taken = await world.draft('t');
        await world.newThread({ resources: [taken.resource] });
        const expired = await world.draft('e');
        await world.pool.query(`update files set created_at = created_at - interval '25 hours' where id = $1`, [
          expired.id,
        ]);
        const deleted = await world.draft('d');
        await world.client.delete(`/files/${deleted.id}`);
        return [
          ['unknown', UNKNOWN],
          ['another person’s', (await world.draft('o', 'o', { client: other })).id],
          ['a service token’s', (await world.draft('s', 's', { client: service })).id],
          ['of another agent', (await world.draft('a', 'a', { agentId: otherAgent })).id],
          ['no longer a draft', taken.id],
          ['expired', expired.id],
          ['deleted', deleted.id],
        ];
      };

      test('unknown, another caller’s, no longer a draft or expired: 400 naming it, and nothing happens', async () => {
        const good = await world.draft('good.txt');
        const waiting = await world.newThread();
        // Not the files: the expired one goes meanwhile.
        const tables = ['thread_summaries', 'run_summaries', 'idempotency_keys'];
        for (const [what, fileId] of await wrongs()) {
          const before = await world.rowCounts(tables);
          const resources = [good.resource, { type: 'file', file_id: fileId }];
          const created = await world.create({ text: 'see', resources });
          const sent = await world.send(waiting.id, userMessage('see', { resources }));
          for (const reply of [created, sent]) {
            expect([what, ...refusal(reply)]).toEqual([what, 400, 'invalid_request']);
            expect(reply.json.error.message).toContain(fileId);
          }
          expect(await world.rowCounts(tables)).toEqual(before);
        }
        expect(await world.files(waiting.id)).toEqual([]);
        expect((await world.create({ text: 'see', resources: [good.resource] })).status).toBe(201);
      });

      test('a batch that is refused claims no file; a file can be claimed once', async () => {
        const one = await world.draft('one.txt');
        const { thread } = await world.waitingThread();
        const busy = await world.send(thread.id, userMessage('see', { resources: [one.resource] }));
        expect(refusal(busy)).toEqual([409, 'idempotency_conflict']);
        const claims = await Promise.all([1, 2, 3, 4].map(() => world.create({ resources: [one.resource] })));
        expect(claims.map(({ status }) => status).toSorted()).toEqual([201, 400, 400, 400]);
      });
    });

    test('a draft is removed after 24 h, its bytes too; an attached file is not', async () => {
      const canary = `aged-draft-${world.backend}`;
      const draft = await world.draft('d.txt', canary);
      const { id } = await world.newThread();
      const { file } = (await world.attach(id, 'a', `aged-attachment-${world.backend}`)).json;
      const age = `update files set created_at = created_at - interval '25 hours' where id = any ($1)`;
      await world.pool.query(age, [[draft.id, file.id]]);
      await eventually(async () => (await world.client.get(`/files/${draft.id}`)).status === 404, {
        what: 'the draft is gone',
      });
      await eventually(async () => (await world.blobsWith(canary)) === 0, {
        what: 'its bytes are gone',
        timeoutMs: 10_000,
      });
      expect((await world.client.get(`/files/${file.id}/content`)).status).toBe(200);
    });
  });
}
