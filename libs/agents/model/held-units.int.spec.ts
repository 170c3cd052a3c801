import type { ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { eventually, isNight, nightTest } from '#testing';
import type { ModelChoice } from './model-settings.ts';
import { anthropic, eventsOf, openAi, stepsAndProviders, streams, type Respond } from './provider.testing.ts';

// Real: the providers' packages, and a server that sends more than they may hold.

const MEBIBYTE = 1024 * 1024;
/** How many pieces the largest call comes in. The time grows with their number. */
const PIECES = isNight ? 16_000 : 2_000;
/** A stream without a bound ends here, so that the test fails instead of the machine. */
const MOST_SENT = 32 * MEBIBYTE;
const CLAUDE: Partial<ModelChoice> = { provider: 'anthropic' };

const { stepWith } = stepsAndProviders();

/** Sends the first events, and then others without end, as fast as they are taken. */
function endless(first: readonly object[], next: (i: number) => object) {
  const sent = { bytes: 0 };
  const respond: Respond = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    void send(response);
  };
  const send = async (response: ServerResponse): Promise<void> => {
    const write = (event: object): boolean => {
      const line = `data: ${JSON.stringify(event)}\n\n`;
      sent.bytes += line.length;
      return response.write(line);
    };
    first.forEach(write);
    for (let i = 0; sent.bytes < MOST_SENT && !response.destroyed; i++) {
      if (write(next(i))) continue;
      while (response.writableNeedDrain && !response.destroyed) await setImmediate();
    }
    response.end();
  };
  return { sent, respond };
}

const calling = (call: object) => openAi.delta({ tool_calls: [call] });
const started = (index: number, block: object) => ({ type: 'content_block_start', index, content_block: block });
const delta = (index: number, delta: object) => ({ type: 'content_block_delta', index, delta });
const id = (i: number) => `call-${i}-${'x'.repeat(30)}`;
const citation = {
  ...{ type: 'web_search_result_location', cited_text: 'c'.repeat(10_000), url: 'https://example.com' },
  ...{ title: 'a', encrypted_index: 'e' },
};

const IN_THE_GATE = ['arguments of a call without a name', 'citations', 'empty thoughts'];
const HELD: [string, Parameters<typeof endless>, Partial<ModelChoice>][] = [
  [
    'arguments of a call without a name',
    [[], () => calling({ index: 0, function: { arguments: 'x'.repeat(256 * 1024) } })],
    {},
  ],
  ['short arguments of it', [[], () => calling({ index: 0, function: { arguments: 'x'.repeat(100) } })], {}],
  ['calls that have only an index', [[], (index) => calling({ index, function: {} })], {}],
  [
    'calls that have only a long id',
    [[], (index) => calling({ index, id: 'x'.repeat(MEBIBYTE / 4), function: {} })],
    {},
  ],
  [
    'a call with another id each time',
    [[openAi.call('write', '{')], (i) => calling({ index: 0, id: id(i), function: { arguments: '' } })],
    {},
  ],
  [
    'input of a set of tools',
    [
      [anthropic.start(), started(0, { type: 'tool_use', id: 'toolu_0', name: 'a', toolset_name: 'set', input: {} })],
      () => delta(0, { type: 'input_json_delta', partial_json: 'x'.repeat(10_000) }),
    ],
    CLAUDE,
  ],
  [
    'citations',
    [
      [anthropic.start(), started(0, { type: 'text', text: '' })],
      () => delta(0, { type: 'citations_delta', citation }),
    ],
    CLAUDE,
  ],
  ['blocks that do not end', [[anthropic.start()], (i) => started(i, { type: 'text', text: '' })], CLAUDE],
  [
    'empty thoughts',
    [
      // Almost as large as an answer may be, so that few thoughts are too many.
      [anthropic.start(), ...anthropic.text(0, 'x'.repeat(1_024_000))],
      (i) => delta(i + 1, { type: 'thinking_delta', thinking: '' }),
    ],
    CLAUDE,
  ],
];

describe('a stream of what is held and never shown', () => {
  const isCut = async (_what: string, [first, next]: Parameters<typeof endless>, model: Partial<ModelChoice>) => {
    const { sent, respond } = endless(first, next);
    const before = process.memoryUsage.rss();
    const { provider, steps } = await stepWith(respond, model);
    await expect(eventsOf(steps)).rejects.toMatchObject({ code: 'output_too_large' });
    await eventually(() => provider.asked[0]?.cut, { what: 'the connection is closed' });
    expect(sent.bytes).toBeLessThan(16 * MEBIBYTE);
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * MEBIBYTE);
  };
  // Each row sends many small events, which takes seconds.
  it.each(HELD.filter(([what]) => IN_THE_GATE.includes(what)))('is cut: %s', isCut);
  nightTest.each(HELD.filter(([what]) => !IN_THE_GATE.includes(what)))('is cut: %s', isCut);

  it.each<[string, (pieces: string[]) => object[], Partial<ModelChoice>]>([
    [
      'openai-compatible',
      (pieces) => [
        openAi.call('write', '{"a":"'),
        ...pieces.map((text) => calling({ index: 0, id: 'call-0', type: 'function', function: { arguments: text } })),
        openAi.call('write', '"}'),
        openAi.finish('tool_calls'),
      ],
      {},
    ],
    [
      'anthropic',
      (pieces) => [
        anthropic.start(),
        started(0, { type: 'tool_use', id: 'toolu_0', name: 'write', input: {} }),
        ...['{"a":"', ...pieces, '"}'].map((text) => delta(0, { type: 'input_json_delta', partial_json: text })),
        { type: 'content_block_stop', index: 0 },
        ...anthropic.end('tool_use'),
      ],
      CLAUDE,
    ],
  ])('is taken if it is the largest call, in small pieces (%s)', async (_provider, eventsFor, model) => {
    const pieces = Array.from({ length: PIECES }, () => 'x'.repeat(1_024_000 / PIECES));
    const { steps } = await stepWith(streams(eventsFor(pieces)), model);
    expect((await eventsOf(steps)).at(-1)).toMatchObject({
      toolCalls: [{ toolName: 'write', toolInput: { a: pieces.join('') } }],
    });
  });
});

it('a provider that only sends ping is silent, also when the answer has a limit', async () => {
  const respond: Respond = (response) => {
    streams([anthropic.start()], { end: false })(response, { url: '', headers: {}, body: {}, cut: false });
    const timer = setInterval(() => response.write('event: ping\ndata: {"type":"ping"}\n\n'), 20);
    response.on('close', () => clearInterval(timer));
  };
  for (const more of [{}, { tokensLeft: 100 }]) {
    const { steps } = await stepWith(respond, { ...CLAUDE, silenceMs: 200 }, more);
    await expect(eventsOf(steps)).rejects.toMatchObject({ code: 'provider_unavailable' });
  }
}, 15_000);
