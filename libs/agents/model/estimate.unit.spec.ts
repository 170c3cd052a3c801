import type { TranscriptMessage } from '../harness.ts';
import { toContinuation } from './continuation.ts';
import { correction, messageTokens, textTokens } from './estimate.ts';
import type { ModelChoice } from './model-settings.ts';
import { STOP_MARK } from './prompt.ts';
import { manifestWith } from './provider.testing.ts';

const model = manifestWith({}).model as ModelChoice;
const countedFor = { model, isShown: (fileId: string) => fileId === 'image' };
const tokensOf = (message: TranscriptMessage) => messageTokens(message, countedFor);

function used(inputTokens: number, estimatedTokens: number): TranscriptMessage {
  const continuation = toContinuation(model, { estimatedTokens, blocks: [] });
  return { role: 'assistant', text: '', toolCalls: [], continuation, usage: { inputTokens, outputTokens: 1 } };
}

describe('the estimate', () => {
  it('is a quarter of the bytes, rounded up, and 1,600 for an image that is shown', () => {
    expect([textTokens(''), textTokens('abcd'), textTokens('abcde'), textTokens('€')]).toEqual([0, 1, 2, 1]);
    const plain = tokensOf({ role: 'user', text: 'abcd', fileIds: ['other'] });
    expect(tokensOf({ role: 'user', text: 'abcd', fileIds: ['other', 'image'] })).toBe(plain + 1_600);
  });

  it('counts what a model asks of tools, and what is kept for its provider', () => {
    const empty: TranscriptMessage = { role: 'assistant', text: '', toolCalls: [] };
    const toolInput = { text: 'x'.repeat(400) };
    const call = { toolCallId: 'call', toolName: 'write', title: 'Write', toolInput };
    expect(tokensOf({ ...empty, toolCalls: [call] })).toBeGreaterThan(tokensOf(empty) + 100);
    const kept = (text: string) =>
      toContinuation(model, { estimatedTokens: 1, blocks: [{ type: 'thinking', text, signature: 'signed' }] });
    expect(tokensOf({ ...empty, continuation: kept('x'.repeat(400)) })).toBe(tokensOf(empty) + 102);
    // Nobody is given back what another harness wanted.
    expect(tokensOf({ ...empty, continuation: { thoughts: 'x'.repeat(400) } })).toBe(tokensOf(empty));
  });

  it('counts the mark of a stopped message', () => {
    const half: TranscriptMessage = { role: 'assistant', text: 'half', toolCalls: [] };
    expect(tokensOf({ ...half, stopped: true })).toBe(tokensOf(half) + 8 + textTokens(STOP_MARK));
  });

  it.each<[number, TranscriptMessage[]]>([
    [1, []],
    [1, [used(50, 100)]],
    [1, [used(100, 100)]],
    [1.25, [used(101, 100)]],
    [1.5, [used(150, 100)]],
    // The last one counts.
    [1.5, [used(300, 100), used(140, 100)]],
    [4, [used(100_000, 100)]],
    // Where the last says nothing, one before it.
    [
      2,
      [used(200, 100), { role: 'assistant', text: '', toolCalls: [], usage: { inputTokens: 9_999, outputTokens: 1 } }],
    ],
  ])('is multiplied by %p', (expected, transcript) => {
    expect(correction(model, transcript)).toBe(expected);
  });
});
