import fastify from 'fastify';
import { installLargeAnswers } from './large-answers.ts';

test.each([
  ['small', { text: 'é"\n' }],
  ['large', { texts: Array(20).fill('é"\n😀'.repeat(5_000)), more: [null, 1, { a: undefined }] }],
])('a %s answer equals JSON.stringify', async (_, value) => {
  const app = fastify();
  installLargeAnswers(app);
  app.get('/', () => Promise.resolve(value));
  const { body, headers } = await app.inject('/');
  await app.close();
  expect(body).toBe(JSON.stringify(value));
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(headers['content-length']).toBe(String(Buffer.byteLength(body)));
});
