import { Readable } from 'node:stream';
import { gunzipSync } from 'node:zlib';
import fastify, { type FastifyReply } from 'fastify';
import { installCompression } from './compress-answers.ts';

const JSON_TYPE = 'application/json; charset=utf-8';

async function answer(send: (reply: FastifyReply) => FastifyReply, headers: Record<string, string> = {}) {
  const app = fastify();
  installCompression(app);
  app.get('/', (_, reply) => send(reply));
  const response = await app.inject({ url: '/', headers: { 'accept-encoding': 'gzip', ...headers } });
  await app.close();
  return response;
}

const json = (bytes: number) => (reply: FastifyReply) => reply.type(JSON_TYPE).send(`"${'é'.repeat(bytes / 2 - 1)}"`);

test('compresses JSON over 1,024 bytes, counted in bytes, not characters', async () => {
  const small = await answer(json(1_024));
  expect([small.headers['content-encoding'], small.headers.vary]).toEqual([undefined, undefined]);
  const large = await answer(json(1_026));
  expect([large.headers['content-encoding'], large.headers.vary]).toEqual(['gzip', 'Accept-Encoding']);
  expect(gunzipSync(large.rawPayload).toString()).toBe(`"${'é'.repeat(512)}"`);
});

test('compresses JSON in a Buffer', async () => {
  const text = JSON.stringify('é'.repeat(5_000));
  const response = await answer((reply) => reply.type(JSON_TYPE).send(Buffer.from(text)));
  expect(response.headers['content-encoding']).toBe('gzip');
  expect(gunzipSync(response.rawPayload).toString()).toBe(text);
});

test.each([
  ['text', (reply: FastifyReply) => reply.type('text/plain').send('x'.repeat(5_000))],
  ['bytes of a file', (reply: FastifyReply) => reply.type('application/octet-stream').send(Buffer.alloc(5_000))],
  ['streamed lines', (reply: FastifyReply) => reply.type('application/x-ndjson').send(Readable.from(['{}\n']))],
  ['a JSON stream', (reply: FastifyReply) => reply.type(JSON_TYPE).send(Readable.from(['"', 'x'.repeat(5_000), '"']))],
])('does not compress %s', async (_, send) => {
  expect((await answer(send)).headers['content-encoding']).toBeUndefined();
});

test('does not compress answers to a request with the cookie of a session', async () => {
  const cookie = 'a=b; spool_session=0123abcd';
  expect((await answer(json(5_000), { cookie })).headers['content-encoding']).toBeUndefined();
  expect((await answer(json(5_000), { cookie: 'a=b' })).headers['content-encoding']).toBe('gzip');
});
