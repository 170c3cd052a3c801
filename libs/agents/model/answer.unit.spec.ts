import { measureTurns, nightTest } from '#testing';
import { Answer } from './answer.ts';

const MEBIBYTE = 1024 * 1024;
const newAnswer = () => new Answer({ estimatedTokens: 1 });
const calling = (input: string) => ({ type: 'tool-call' as const, toolCallId: 'c', toolName: 'look', input });
const keys = (count: number) => `{${Array.from({ length: count }, (_, i) => `"k${i}":0`).join(',')}}`;

function callWith(input: string) {
  const answer = newAnswer();
  answer.add(calling(input));
  return answer.toolCalls[0];
}

describe('the input of a call', () => {
  it('is taken up to its bounds', () => {
    expect(Object.keys(callWith(keys(24_999))?.toolInput ?? {})).toHaveLength(24_999);
  });

  it.each(['', ' null', '[]', '""', '{}'])('is empty if the model writes %p', (input) => {
    expect(callWith(input)).toEqual({ toolName: 'look', toolInput: {} });
  });

  it('may follow an empty object', () => {
    expect(callWith('{}{"x":1}')).toEqual({ toolName: 'look', toolInput: { x: 1 } });
  });

  it.each([
    ['parts', keys(100_000)],
    ['levels', `{"a":${'['.repeat(200)}${']'.repeat(200)}}`],
  ])('is not parsed if it has too many %s', (_what, input) => {
    expect(callWith(input)).toEqual({ toolName: 'look', toolInput: {}, invalidInput: input.slice(0, 4_096) });
  });

  nightTest('takes a short turn, whatever is in it', async () => {
    const texts = [keys(24_999), keys(100_000), '['.repeat(MEBIBYTE), `{"a":"${'\\n'.repeat(MEBIBYTE / 2 - 10)}"}`];
    for (const text of texts) await measureTurns(() => callWith(text));
  });
});

describe('an answer that is too large', () => {
  const addForEver = (...parts: Parameters<Answer['add']>[0][]) => {
    const answer = newAnswer();
    for (let i = 0; i < 2 * MEBIBYTE; i++) for (const part of parts) answer.add(part);
  };

  it('is not one with empty calls without end', () => {
    const start = { type: 'tool-input-start' as const, id: 'c', toolName: '' };
    expect(() => addForEver(start)).toThrow('more output than can be stored');
  });

  it('is one whose thought is signed again and again', () => {
    const providerMetadata = { anthropic: { signature: 's' } };
    const signed = { type: 'reasoning-delta' as const, id: 't', delta: '', providerMetadata };
    const answer = newAnswer();
    answer.add({ type: 'reasoning-delta', id: 't', delta: 'x'.repeat(MEBIBYTE / 4) });
    expect(() => Array.from({ length: 5 }, () => answer.add(signed))).toThrow('more output than can be stored');
    expect(answer.blocks.length).toBeLessThan(5);
  });
});
