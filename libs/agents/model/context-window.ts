import { HarnessError, type TranscriptMessage } from '../harness.ts';
import { bytesOfResult, sum, textTokens } from './estimate.ts';
import { firstBytes } from '../first-bytes.ts';

/** Results of the current turn that are never left out whole. */
const KEPT_RESULTS = 2;
/** The least of a result that is worth showing, tokens. */
const LEAST_RESULT_TOKENS = 64;
/** Into how many steps the budget is divided: more is left out at once than must be, so that the next calls begin alike. */
const STEPS = 4;

export interface ContextBudget {
  /** Tokens for all messages. */
  budget: number;
  /** Of one message, estimated. */
  tokensOf: (message: TranscriptMessage) => number;
}

type ToolMessage = Extract<TranscriptMessage, { role: 'tool' }>;

/**
 * The messages that fit the budget (docs/models.md has the policy). What is left out, in this order:
 *
 * 1. the results of tools before the last user message, the oldest first; a line says so in their place;
 * 2. the turns before it, whole, the oldest first;
 * 3. the results after it, the oldest first, but for the newest two; those are cut.
 *
 * The first three go in steps of a quarter of the budget: so what a transcript begins with stays the same for many calls,
 * and providers find it in their caches. Throws HarnessError (`context_too_long`).
 */
export function fitContext(
  transcript: readonly TranscriptMessage[],
  { budget, tokensOf }: ContextBudget,
): readonly TranscriptMessage[] {
  const sizes = transcript.map(tokensOf);
  const total = sum(sizes);
  if (total <= budget) return transcript;
  if (budget <= 0) throw new HarnessError('context_too_long');
  const step = Math.max(1, Math.floor(budget / STEPS));
  const goal = Math.ceil((total - budget) / step) * step;
  const kept = [...transcript] as (TranscriptMessage | null)[];
  let freed = 0;

  const replaceResult = (i: number, text: string): void => {
    const message = transcript[i] as ToolMessage;
    const shorter = withResult(message, text);
    const saved = (sizes[i] ?? 0) - tokensOf(shorter);
    if (saved <= 0) return;
    kept[i] = shorter;
    sizes[i] = tokensOf(shorter);
    freed += saved;
  };
  const leaveOutResults = (indices: readonly number[]): void => {
    for (const i of indices) {
      if (freed >= goal) return;
      replaceResult(i, leftOutNote(transcript[i] as ToolMessage));
    }
  };

  // 1. Old results, 2. old turns.
  const turn = Math.max(
    0,
    transcript.findLastIndex(({ role }) => role === 'user'),
  );
  const results = transcript.flatMap(({ role }, i) => (role === 'tool' ? [i] : []));
  leaveOutResults(results.filter((i) => i < turn));
  for (let i = 0; i < turn; i++) {
    // Only where a turn begins: a call never goes without its result.
    if (freed >= goal && (i === 0 || transcript[i]?.role === 'user')) break;
    freed += sizes[i] ?? 0;
    kept[i] = null;
  }
  // 3. The results of this turn.
  const current = results.filter((i) => i >= turn);
  leaveOutResults(current.slice(0, -KEPT_RESULTS));
  const newest = current.slice(-KEPT_RESULTS);
  const room = budget - (total - freed) + sum(newest.map((i) => sizes[i] ?? 0));
  for (const [i, share] of shares(
    newest.map((i) => [i, sizes[i] ?? 0] as const),
    room,
  )) {
    const { result } = transcript[i] as ToolMessage;
    const frame = tokensOf(withResult(transcript[i] as ToolMessage, ''));
    replaceResult(i, cutResult(result, share - frame));
  }
  if (total - freed > budget) throw new HarnessError('context_too_long');
  return kept.filter((message) => message !== null);
}

/** How much of the room each of at most two results gets, where it is less than it needs: half, and what the other leaves. */
function shares(needs: readonly (readonly [index: number, tokens: number])[], room: number): [number, number][] {
  if (sum(needs.map(([, tokens]) => tokens)) <= room) return [];
  const half = Math.floor(room / needs.length);
  return needs.flatMap(([index, tokens], at) => {
    const others = sum(needs.filter((_, i) => i !== at).map(([, other]) => other));
    const share = Math.max(half, room - others);
    return tokens > share ? [[index, share] as [number, number]] : [];
  });
}

/** Without its images too. */
function withResult({ fileIds: _, ...message }: ToolMessage, result: string): ToolMessage {
  return { ...message, result };
}

function leftOutNote(message: ToolMessage): string {
  return `[This result was left out, to make room: ${size(bytesOfResult(message))}.]`;
}

/** As much of the result as so many tokens hold, with a note. */
function cutResult(result: string, tokens: number): string {
  const note = `\n[The rest of this result was left out, to make room: ${size(Buffer.byteLength(result))} in all.]`;
  const room = tokens - textTokens(note);
  if (room < LEAST_RESULT_TOKENS) throw new HarnessError('context_too_long');
  return firstBytes(result, room * 4) + note;
}

/** Made once: `toLocaleString` makes one each time. */
const NUMBERS = new Intl.NumberFormat('en');

function size(bytes: number): string {
  return `${NUMBERS.format(bytes)} bytes`;
}
