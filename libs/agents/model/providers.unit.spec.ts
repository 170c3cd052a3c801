import type { ModelChoice } from './model-settings.ts';
import { manifestWith } from './provider.testing.ts';
import { callSettings, languageModel, resolveKey, type Fetch } from './providers.ts';

const modelOf = (more: Partial<ModelChoice>) => manifestWith(more).model as ModelChoice;

/** What a call of the model asks, and where. */
async function askedOf(model: ModelChoice, apiKey: string | null = 'sk-1') {
  const asked: { url: string; headers: Headers; body: Record<string, unknown> }[] = [];
  const fetch: Fetch = (input, init) => {
    const body = JSON.parse(init?.body as string) as Record<string, unknown>;
    asked.push({ url: input as string, headers: new Headers(init?.headers), body });
    return Promise.resolve(new Response(''));
  };
  const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'Hello' }] }];
  await languageModel(model, { apiKey, fetch }).doStream({ prompt, ...callSettings(model, true) });
  return asked[0];
}

describe('a call of a provider', () => {
  it('goes where providers usually are', async () => {
    expect((await askedOf(modelOf({})))?.url).toBe('https://api.openai.com/v1/chat/completions');
    expect((await askedOf(modelOf({ provider: 'anthropic' })))?.url).toBe('https://api.anthropic.com/v1/messages');
  });

  it.each([
    ['https://api.openai.com/v1', 'max_completion_tokens'],
    ['https://eu.api.openai.com/v1', 'max_completion_tokens'],
    ['https://mine.openai.azure.com/openai/v1', 'max_completion_tokens'],
    ['https://notapi.openai.com.example.com/v1', 'max_tokens'],
    ['http://localhost:11434/v1', 'max_tokens'],
  ])('limits the answer at %s by %s', async (baseUrl, field) => {
    const asked = await askedOf(modelOf({ baseUrl, settings: { maxOutputTokens: 100 } }));
    const limits = Object.entries(asked?.body ?? {}).filter(([name]) => name.startsWith('max_'));
    expect(limits).toEqual([[field, 100]]);
  });

  it('asks for nothing that the manifest does not ask for', async () => {
    const asked = await askedOf(modelOf({}));
    expect(Object.keys(asked?.body ?? {}).toSorted()).toEqual(['messages', 'model', 'stream', 'stream_options']);
    const settings = { temperature: 0.5, reasoningEffort: 'low' as const };
    expect((await askedOf(modelOf({ settings })))?.body).toMatchObject({ temperature: 0.5, reasoning_effort: 'low' });
  });

  it('takes no key from variables that the manifest does not name', async () => {
    const { OPENAI_API_KEY: before } = process.env;
    process.env.OPENAI_API_KEY = 'sk-other';
    try {
      expect((await askedOf(modelOf({}), null))?.headers.has('authorization')).toBe(false);
    } finally {
      if (before === undefined) delete process.env.OPENAI_API_KEY;
      else process.env.OPENAI_API_KEY = before;
    }
    expect(await resolveKey(modelOf({}), { OPENAI_API_KEY: 'sk-other' })).toBeNull();
    expect(await resolveKey(modelOf({ apiKey: { env: 'KEY' } }), { KEY: 'sk-1' })).toBe('sk-1');
  });

  it('leaves the whole answer to anthropic’s limit, thinking included', () => {
    const settings = { thinkingTokens: 1_024, maxOutputTokens: 4_000 };
    const model = modelOf({ provider: 'anthropic', settings });
    expect(callSettings(model, true)).toEqual({
      maxOutputTokens: 2_976,
      providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1_024 } } },
    });
    expect(callSettings(model, false)).toEqual({
      maxOutputTokens: 4_000,
      providerOptions: { anthropic: { thinking: { type: 'disabled' } } },
    });
  });
});
