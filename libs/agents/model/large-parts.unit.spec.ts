import type { LanguageModelV3Prompt } from '@ai-sdk/provider';
import fc from 'fast-check';
import { measureTurns, nightTest } from '#testing';
import { LargeParts } from './large-parts.ts';

const MEBIBYTE = 1024 * 1024;

/** What is sent of a prompt, where each input stands for itself and as a text. */
async function sentOf(prompt: LanguageModelV3Prompt): Promise<unknown> {
  const large = new LargeParts();
  let sent = '';
  const fetch = large.writing(async (_url, init) => {
    sent = Buffer.from(init?.body as Uint8Array).toString();
    return new Response();
  });
  await fetch('http://localhost', { body: JSON.stringify(bodyOf(await large.take(prompt))) });
  return JSON.parse(sent) as unknown;
}

function bodyOf(prompt: LanguageModelV3Prompt): unknown {
  const inputs = prompt.flatMap(({ content }) =>
    typeof content === 'string' ? [] : content.flatMap((part) => (part.type === 'tool-call' ? [part.input] : [])),
  );
  return { prompt, arguments: inputs.map((input) => JSON.stringify(input)) };
}

const call = (input: unknown) => ({ type: 'tool-call' as const, toolCallId: 'c', toolName: 't', input });
const result = (value: string) => ({
  ...{ type: 'tool-result' as const, toolCallId: 'c', toolName: 't' },
  output: { type: 'text' as const, value },
});
const fields = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`key "${i}"`, '\n']));

it('sends random prompts as they are', async () => {
  const text = fc
    .tuple(fc.string({ unit: 'binary' }), fc.constantFrom(1, 20_000))
    .map(([some, times]) => some.repeat(times));
  const input = fc.oneof(fc.jsonValue(), fc.constant(fields(500)));
  const parts = fc.record({ said: text, input, value: text });
  await fc.assert(
    fc.asyncProperty(fc.array(parts, { maxLength: 3 }), async (messages) => {
      const prompt = messages.flatMap(({ said, input: given, value }): LanguageModelV3Prompt => [
        { role: 'user', content: [{ type: 'text', text: said }] },
        { role: 'assistant', content: [{ type: 'text', text: said }, call(given)] },
        { role: 'tool', content: [result(value)] },
      ]);
      expect(await sentOf([{ role: 'system', content: 'x'.repeat(20_000) }, ...prompt, smallFile])).toEqual(
        JSON.parse(JSON.stringify(bodyOf([{ role: 'system', content: 'x'.repeat(20_000) }, ...prompt, fileAsText]))),
      );
    }),
    { numRuns: 50 },
  );
});

const fileWith = (data: Uint8Array | string): LanguageModelV3Prompt[number] => ({
  role: 'user',
  content: [{ type: 'file', mediaType: 'image/png', data }],
});
const smallFile = fileWith(new Uint8Array([1, 2, 3]));
const fileAsText = fileWith('AQID');

nightTest('takes short turns for 16 MiB of results, inputs and images', async () => {
  const results = Array.from({ length: 8 }, () => result('\n'.repeat(MEBIBYTE)));
  const inputs = Array.from({ length: 20 }, () => call(fields(24_000)));
  const prompt: LanguageModelV3Prompt = [
    { role: 'assistant', content: inputs },
    { role: 'tool', content: results },
    fileWith(new Uint8Array(5 * MEBIBYTE)),
  ];
  await measureTurns(async () => {
    const large = new LargeParts();
    const fetch = large.writing(async () => new Response());
    await fetch('http://localhost', { body: JSON.stringify(await large.take(prompt)) });
  });
});
