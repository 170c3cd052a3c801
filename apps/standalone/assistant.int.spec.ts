import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { checkManifest } from '#agents';
import { assistantManifest, modelFromEnv, NoModel, providerAddresses, requireListedKey } from './assistant.ts';

test('a model whose key is no variable of manifests is refused with the setting', () => {
  const model = { provider: 'openai-compatible' as const, name: 'm', apiKey: { env: 'OPENAI_API_KEY' } };
  expect(() => requireListedKey(model, 'TICKETS_TOKEN')).toThrow(
    new NoModel('MANIFEST_VARIABLES does not list OPENAI_API_KEY'),
  );
  for (const listed of ['*_API_KEY', 'A,OPENAI_API_KEY']) expect(() => requireListedKey(model, listed)).not.toThrow();
  expect(() => requireListedKey({ provider: 'openai-compatible', name: 'm' }, '')).not.toThrow();
});

describe('model from the environment', () => {
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
    ['null without variables', {}, null],
    ['null for empty variables', { OPENAI_API_KEY: '', ANTHROPIC_API_KEY: '', OPENAI_BASE_URL: '' }, null],
    [
      'the default model for an OpenAI key',
      { OPENAI_API_KEY: 'sk' },
      { provider: 'openai-compatible', name: 'gpt-5-mini', apiKey: { env: 'OPENAI_API_KEY' } },
    ],
    [
      'the named model for an Anthropic key',
      { ANTHROPIC_API_KEY: 'sk', ANTHROPIC_MODEL: 'large' },
      { provider: 'anthropic', name: 'large', apiKey: { env: 'ANTHROPIC_API_KEY' } },
    ],
    [
      'the named model of a custom endpoint',
      { OPENAI_BASE_URL: 'http://models.example/v1/', OPENAI_MODEL: 'small', ANTHROPIC_API_KEY: 'sk' },
      { provider: 'openai-compatible', name: 'small', baseUrl: 'http://models.example/v1' },
    ],
  ])('is %s', async (_which, env, model) => {
    expect(await modelFromEnv(env)).toEqual(model);
  });

  it('is the first one that a custom endpoint lists', async () => {
    const env = { OPENAI_BASE_URL: `${baseUrl}/`, OPENAI_API_KEY: 'sk' };
    expect(await modelFromEnv(env)).toMatchObject({ name: 'first', baseUrl });
    expect(asked).toEqual(['/v1/models Bearer sk']);
  });

  it.each([
    ['fails to list models', { status: 404, body: '' }, /HTTP 404/],
    ['lists no models', { status: 200, body: '{"data":[]}' }, /not a list of models/],
  ])('throws NoModel if the endpoint %s', async (_what, bad, why) => {
    const good = answer;
    answer = bad;
    const failure = await modelFromEnv({ OPENAI_BASE_URL: baseUrl }).catch((error: unknown) => error);
    answer = good;
    expect(failure).toBeInstanceOf(NoModel);
    expect((failure as Error).message).toMatch(why);
  });
});

it('returns a valid manifest of the example assistant with the model', async () => {
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
])('returns the provider addresses of %j: %j', (env, addresses) => {
  expect(providerAddresses(env)).toEqual(addresses);
});
