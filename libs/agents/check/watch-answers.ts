import type { Fetch } from '../model/providers.ts';

/** What a check reads from providers' answers because the harness does not return it. */
export interface SeenInAnswers {
  /** Whether a server has reported tokens of input, and of output. */
  input: boolean;
  output: boolean;
  /** The rate limit headers of the answers, each with its last value. */
  limits: Map<string, string>;
}

const INPUT_TOKENS = /"(?:prompt|input)_tokens"\s*:\s*[1-9]/;
const OUTPUT_TOKENS = /"(?:completion|output)_tokens"\s*:\s*[1-9]/;
/** UTF-16 units kept from one chunk to the next, because a match may span both. */
const OVERLAP = 64;

const LIMIT_HEADER = /^(x|anthropic)-ratelimit-[a-z0-9-]{1,60}$/;
/** Numbers, durations and times. Other values are not shown, because a server could send the key back. */
const LIMIT_VALUE = /^\d[\d.:TZhmsµ+-]{0,39}$/;

/** Returns a wrapper for `fetch` and what it has read so far. The wrapper changes neither requests nor answers. */
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
