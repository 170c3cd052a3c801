import { pauseIfLong } from '#platform';
import type { TranscriptMessage } from './harness.ts';

/** Returns the words of all messages: the input tokens of a harness without a model. */
export async function wordsIn(transcript: readonly TranscriptMessage[]): Promise<number> {
  let words = 0;
  for (const entry of transcript) {
    words += countWords(entry.role === 'tool' ? entry.result : entry.text);
    await pauseIfLong();
  }
  return words;
}

/** Yields the deltas in which a harness without a model streams a text: words with the white space behind them. */
export function* deltasOf(text: string): Generator<string> {
  for (const [delta] of text.matchAll(/\S+\s*|\s+/g)) yield delta;
}

/** Counts without a list of the words, because a transcript may have millions. */
export function countWords(text: string): number {
  let words = 0;
  let inWord = false;
  for (let i = 0; i < text.length; i++) {
    const isSpace = isSpaceCode(text.charCodeAt(i));
    if (inWord === isSpace) inWord = !isSpace;
    else continue;
    if (inWord) words += 1;
  }
  return words;
}

const RARE_SPACES = new Set([0x1680, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000, 0xfeff]);
for (let code = 0x2000; code <= 0x200a; code++) RARE_SPACES.add(code);

/** Whether `\s` of a regular expression matches the character. */
function isSpaceCode(code: number): boolean {
  if (code <= 0x20) return code === 0x20 || (code >= 0x09 && code <= 0x0d);
  return code === 0xa0 || (code >= 0x1680 && RARE_SPACES.has(code));
}
