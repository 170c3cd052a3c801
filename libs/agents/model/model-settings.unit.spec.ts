import { issueText } from '../manifest-issues.ts';
import { answerTokens, modelIssues, takesImages, windowTokens } from './model-settings.ts';
import { manifestWith } from './provider.testing.ts';

type Manifest = Parameters<typeof manifestWith>;
const problems = (...manifest: Manifest) => modelIssues(manifestWith(...manifest)).map(issueText);
const anthropic = { provider: 'anthropic' as const, apiKey: { env: 'KEY' } };

describe('the settings of an agent with a model', () => {
  it.each<[string[], Manifest]>([
    [[], [{}]],
    [[], [{ settings: { temperature: 2, reasoningEffort: 'low' } }]],
    [[], [{ ...anthropic, settings: { temperature: 1, thinkingTokens: 1_024, maxOutputTokens: 1_025 } }]],
    [[], [{ ...anthropic, settings: { thinkingTokens: 1_024 } }]],
    [['harness.pauseMs: is not a known field'], [{}, { harness: { name: 'model', pauseMs: 5 } }]],
    [['model.apiKey: is missing; anthropic needs a key'], [{ provider: 'anthropic' }]],
    [
      ['model.settings.temperature: must be at most 1 with anthropic'],
      [{ ...anthropic, settings: { temperature: 1.1 } }],
    ],
    [['model.settings.thinkingTokens: is for anthropic only'], [{ settings: { thinkingTokens: 1_024 } }]],
    [
      ['model.settings.thinkingTokens: must be less than maxOutputTokens'],
      [{ ...anthropic, settings: { thinkingTokens: 2_000, maxOutputTokens: 2_000 } }],
    ],
    [
      ['model.settings.reasoningEffort: is for openai-compatible only'],
      [{ ...anthropic, settings: { reasoningEffort: 'low' } }],
    ],
    [['model.quirks: is for openai-compatible only'], [{ ...anthropic, quirks: { callIds: 'short' } }]],
    [
      [
        'model.settings.maxOutputTokens: must be less than the context window (contextTokens); if unset, thinkingTokens must leave room for an answer',
      ],
      [{ contextTokens: 4_000, settings: { maxOutputTokens: 4_000 } }],
    ],
  ])('%j', (expected, manifest) => {
    expect(problems(...manifest)).toEqual(expected);
  });

  it('are checked of each fallback model', () => {
    const fallbackModels = [{ ...anthropic, name: 'a', silenceMs: 1 }, { provider: 'anthropic' as const, name: 'b', silenceMs: 1 }]; // oxfmt-ignore
    expect(problems({}, { fallbackModels })).toEqual(['fallbackModels.1.apiKey: is missing; anthropic needs a key']);
  });

  it('need a model', () => {
    expect(modelIssues({ ...manifestWith({}), model: undefined }).map(issueText)).toEqual(['model: is missing']);
  });

  it('have defaults that the provider’s usual models allow', () => {
    const plain = { ...anthropic, name: 'm', silenceMs: 1 };
    const open = { ...plain, provider: 'openai-compatible' as const };
    expect([windowTokens(plain), windowTokens(open), windowTokens({ ...open, contextTokens: 5_000 })]).toEqual([
      200_000, 128_000, 5_000,
    ]);
    expect([takesImages(plain), takesImages(open), takesImages({ ...open, images: true })]).toEqual([
      true,
      false,
      true,
    ]);
    expect(answerTokens(plain)).toBe(8_000);
    expect(answerTokens({ ...plain, contextTokens: 8_000 })).toBe(2_000);
    expect(answerTokens({ ...plain, settings: { thinkingTokens: 3_000 } })).toBe(11_000);
    expect(answerTokens({ ...plain, settings: { thinkingTokens: 3_000, maxOutputTokens: 5_000 } })).toBe(5_000);
  });
});
