import { allowing } from '../allowances.testing.ts';
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
  await languageModel(model, { apiKey, fetch, onOddity: () => undefined }).doStream({
    prompt,
    ...callSettings(model, true),
  });
  return asked[0];
}

describe('a call of a provider', () => {
  it('goes where providers usually are', async () => {
    expect((await askedOf(modelOf({})))?.url).toBe('https://api.openai.com/v1/chat/completions');
    expect((await askedOf(modelOf({ provider: 'anthropic' })))?.url).toBe('https://api.anthropic.com/v1/messages');
  });

  it.each([
    ['https://api.openai.com/v1', 'max_completion_tokens'],
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
    expect(await resolveKey(modelOf({}), allowing({ OPENAI_API_KEY: 'sk-other' }))).toBeNull();
    expect(await resolveKey(modelOf({ apiKey: { env: 'KEY' } }), allowing({ KEY: 'sk-1' }))).toBe('sk-1');
  });

  it.each([
    ['what is left, where that is less', { maxOutputTokens: 1_000 }, 600, 600],
    ['the manifest’s limit, where that is less', { maxOutputTokens: 1_000 }, 5_000, 1_000],
    ['what is left, where every model can answer as much', {}, 600, 600],
    ['nothing, where a model may refuse so much', {}, 500_000, undefined],
  ])('limits the answer to %s', (_what, settings, tokensLeft, maxOutputTokens) => {
    const compatible = callSettings(modelOf({ settings }), true, tokensLeft);
    expect(compatible.maxOutputTokens).toBe(maxOutputTokens);
    const anthropic = callSettings(modelOf({ provider: 'anthropic', settings }), true, tokensLeft);
    expect(anthropic.maxOutputTokens).toBe(maxOutputTokens ?? 8_000);
  });

  it('limits the answer if a longer one would leave too little window for the prompt', () => {
    const small = modelOf({ contextTokens: 4_000 });
    expect(callSettings(small, true, 2_000)).not.toHaveProperty('maxOutputTokens');
    expect(callSettings(small, true, 999)).toMatchObject({ maxOutputTokens: 999 });
  });

  it('turns off the thinking of anthropic if it would use up the rest', () => {
    const model = modelOf({ provider: 'anthropic', settings: { thinkingTokens: 1_024, maxOutputTokens: 4_000 } });
    const thinking = (tokensLeft: number) => {
      const { maxOutputTokens, providerOptions } = callSettings(model, true, tokensLeft);
      return [maxOutputTokens, (providerOptions?.anthropic as { thinking: { type: string } }).thinking.type];
    };
    expect(thinking(1_025)).toEqual([1, 'enabled']);
    expect(thinking(1_024)).toEqual([1_024, 'disabled']);
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
