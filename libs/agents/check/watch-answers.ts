import type { Fetch } from '../model/providers.ts';

/** What providers' answers had that the harness passes over. */
export interface SeenInAnswers {
  /** Whether a server has reported tokens itself. */
  input: boolean;
  output: boolean;
  /** Its headers about rate limits, the last value of each. */
  limits: Map<string, string>;
}

const INPUT_TOKENS = /"(?:prompt|input)_tokens"\s*:\s*[1-9]/;
const OUTPUT_TOKENS = /"(?:completion|output)_tokens"\s*:\s*[1-9]/;
/** No longer than a match, which two pieces may share. */
const OVERLAP = 64;

const LIMIT_HEADER = /^(x|anthropic)-ratelimit-[a-z0-9-]{1,60}$/;
/** Numbers, durations and times. Nothing else is shown: a server could send the key back. */
const LIMIT_VALUE = /^\d[\d.:TZhmsµ+-]{0,39}$/;

/** Returns a wrapper for `fetch` that changes nothing, and what it has seen so far. */
export function watchAnswers(): { seen: SeenInAnswers; watch: (fetch: Fetch) => Fetch } {
  const seen: SeenInAnswers = { input: false, output: false, limits: new Map() };
  const watch =
    (fetch: Fetch): Fetch =>
    async (input, init) => {
      const response = await fetch(input, init);
      for (const [name, value] of response.headers)
        if (LIMIT_HEADER.test(name) && LIMIT_VALUE.test(value)) seen.limits.set(name, value);
      if (!response.ok || response.body === null) return response;
      return new Response(response.body.pipeThrough(lookForTokens(seen)), response);
    };
  return { seen, watch };
}

function lookForTokens(seen: SeenInAnswers): TransformStream<Uint8Array, Uint8Array<ArrayBuffer>> {
  let text = '';
  return new TransformStream({
    transform(piece, controller) {
      text = text.slice(-OVERLAP) + Buffer.from(piece).toString('latin1');
      seen.input ||= INPUT_TOKENS.test(text);
      seen.output ||= OUTPUT_TOKENS.test(text);
      controller.enqueue(piece as Uint8Array<ArrayBuffer>);
    },
  });
}
