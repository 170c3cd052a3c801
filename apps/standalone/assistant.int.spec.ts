import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkManifest } from '#agents';
import { assistantManifest, modelFromEnv, NoModel, providerAddresses } from './assistant.ts';

describe('the model that the environment names', () => {
  let server: Server;
  let baseUrl: string;
  let answer = { status: 200, body: JSON.stringify({ data: [{ id: 'first' }, { id: 'second' }] }) };
  let asked: string[] = [];

  beforeAll(async () => {
    server = createServer((request, response) => {
      asked.push(`${request.url} ${request.headers.authorization ?? ''}`.trim());
      response.writeHead(answer.status).end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  });
  beforeEach(() => (asked = []));
  afterAll(() => new Promise((resolve) => server.close(resolve)));

  it.each([
    ['none', {}, null],
    ['none, where variables are empty', { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', OPENAI_BASE_URL: '' }, null],
    [
      'a hosted one',
      { OPENAI_API_KEY: 'sk' },
      { provider: 'openai-compatible', name: 'gpt-5-mini', apiKey: { env: 'OPENAI_API_KEY' } },
    ],
    [
      'the other hosted one',
      { ANTHROPIC_API_KEY: 'sk', ANTHROPIC_MODEL: 'large' },
      { provider: 'anthropic', name: 'large', apiKey: { env: 'ANTHROPIC_API_KEY' } },
    ],
    [
      'one of one’s own, by name',
      { OPENAI_BASE_URL: 'http://models.example/v1/', OPENAI_MODEL: 'small', ANTHROPIC_API_KEY: 'sk' },
      { provider: 'openai-compatible', name: 'small', baseUrl: 'http://models.example/v1' },
    ],
  ])('is %s', async (_which, env, model) => {
    expect(await modelFromEnv(env)).toEqual(model);
  });

  it('is the first that an endpoint of one’s own has', async () => {
    const env = { OPENAI_BASE_URL: `${baseUrl}/`, OPENAI_API_KEY: 'sk' };
    expect(await modelFromEnv(env)).toMatchObject({ name: 'first', baseUrl });
    expect(asked).toEqual(['/v1/models Bearer sk']);
  });

  it.each([
    ['refuses', { status: 404, body: '' }, /HTTP 404/],
    ['has none', { status: 200, body: '{"data":[]}' }, /not a list of models/],
  ])('is to be named where the endpoint %s', async (_what, bad, why) => {
    const good = answer;
    answer = bad;
    const failure = await modelFromEnv({ OPENAI_BASE_URL: baseUrl }).catch((error: unknown) => error);
    answer = good;
    expect(failure).toBeInstanceOf(NoModel);
    expect((failure as Error).message).toMatch(why);
  });
});

it('the example of an assistant is right on any of these models', async () => {
  const model = { provider: 'anthropic' as const, name: 'any' };
  const checked = checkManifest(await assistantManifest(model), new Map());
  expect(checked).toMatchObject({ manifest: { name: 'assistant', model } });
});

it.each([
  [{}, []],
  [{ OPENAI_BASE_URL: 'http://localhost:11434/v1' }, ['localhost:11434']],
  [
    { OPENAI_BASE_URL: 'https://a.example/v1', ANTHROPIC_BASE_URL: 'http://b.example' },
    ['a.example:443', 'b.example:80'],
  ],
  [{ OPENAI_BASE_URL: 'nonsense' }, []],
])('whoever names a provider in %j wants %j reached', (env, addresses) => {
  expect(providerAddresses(env)).toEqual(addresses);
});
