import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { InitializeResultSchema, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { seededRandom } from '#testing';
import { describeTools } from './describe-tools.ts';
import { isMap, parseMessage, type JsonMap } from './message.ts';
import { MessageLines } from './message-lines.ts';
import { checkResult, readResult } from './read-result.ts';
import { FRAMINGS, Sloppiness, type Framing } from './sloppiness.testing.ts';
import { tidyResponse } from './tidy-response.ts';
import { ToolList } from './tool-list.ts';

// Real: answers of server-everything and server-filesystem, recorded on 2026-11-26 (every second tool of their lists), and all that reads them. Not real: their
// processes. `SPOOL_SEED=7 npx jest sloppy-servers.unit` runs one seed, `SPOOL_SEEDS=10000` more.

const recorded = readFileSync(join(import.meta.dirname, 'recorded-answers.testing.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as { kind: 'initialize' | 'list' | 'call'; message: JsonMap });
const messages = recorded.map(({ message }) => message);

const ONE_SEED = process.env['SPOOL_SEED'];
const SEEDS = Number(process.env['SPOOL_SEEDS'] ?? 300);
/** For 10,000 seeds. */
const NIGHT_MS = 20 * 60_000;
const UNREADABLE = /^\[a part that cannot be read.*\n?/gm;

/** Returns what stands for each recorded answer once all of it has been read. */
async function read(pieces: readonly Uint8Array[], framing: Framing): Promise<unknown[]> {
  const found = new Map((await messagesIn(pieces, framing)).map((message) => [message['id'], message['result']]));
  const readings: unknown[] = [];
  for (const { kind, message } of recorded) readings.push(await READERS[kind](found.get(message['id']) as JsonMap));
  return readings;
}

async function messagesIn(pieces: readonly Uint8Array[], framing: Framing): Promise<JsonMap[]> {
  if (framing === 'lines') {
    const lines = new MessageLines(() => Infinity);
    return pieces.flatMap((piece) => lines.take(piece)).flatMap((line) => tryTo(() => parseMessage(line)));
  }
  const source = ReadableStream.from<Uint8Array>(pieces);
  const type = framing === 'events' ? 'text/event-stream' : 'application/json';
  const response = await tidyResponse(new Response(source, { headers: { 'content-type': type } }), 0);
  if (framing === 'body') return [JSONRPCMessageSchema.parse(await response.json())];
  const events = (await response.text()).split('\n\n').filter((event) => !event.includes('event: other'));
  const data = events.map((event) => [...event.matchAll(/^data: ?(.*)$/gm)].map(([, line]) => line).join('\n'));
  return data.flatMap((text) => tryTo(() => JSONRPCMessageSchema.parse(JSON.parse(text))));
}

function tryTo(parse: () => JsonMap): JsonMap[] {
  try {
    return [parse()];
  } catch {
    return [];
  }
}

const READERS: Record<(typeof recorded)[number]['kind'], (result: JsonMap) => unknown> = {
  initialize: (result) => {
    const { protocolVersion, capabilities } = InitializeResultSchema.parse(result);
    return { protocolVersion, hasTools: capabilities.tools !== undefined };
  },
  list: async (result) => {
    const list = new ToolList();
    const { tools } = await list.read(async () => {
      list.take(1);
      return result;
    });
    return (await describeTools({ name: 'any', idempotent: [] }, tools)).tools;
  },
  call: async (result) => {
    const saved: unknown[] = [];
    const saveArtifact = ({ bytes, ...artifact }: { bytes: Uint8Array }) => {
      saved.push({ ...artifact, bytes: Buffer.from(bytes).toString('hex') });
      return Promise.resolve({ fileId: `file-${saved.length}` });
    };
    const read = await readResult(checkResult(result), [], { saveArtifact });
    return { ...read, text: `${read.text}\n`.replaceAll(UNREADABLE, ''), saved };
  },
};

const clean = read(
  messages.map((message) => Buffer.from(`${JSON.stringify(message)}\n`)),
  'lines',
);

it('reads recorded answers', async () => {
  const readings = await clean;
  expect(readings.slice(0, 1)).toEqual([{ protocolVersion: '2025-06-18', hasTools: true }]);
  expect(readings.filter(Array.isArray).map(({ length }) => length)).toEqual([7, 7]);
  expect(readings.filter((reading) => isMap(reading) && 'text' in reading)).toHaveLength(13);
  expect(JSON.stringify(readings)).toContain('"mimeType":"image/png","bytes":"89504e47');
});

it(
  `reads the same from sloppy servers, whatever the framing (${ONE_SEED ?? SEEDS} seeds)`,
  async () => {
    const seeds = ONE_SEED === undefined ? Array.from({ length: SEEDS }, (_, i) => i + 1) : [Number(ONE_SEED)];
    const wanted = await clean;
    for (const seed of seeds) {
      const sloppiness = new Sloppiness(seededRandom(seed));
      const framing = FRAMINGS[seed % FRAMINGS.length]!;
      const sloppy = messages.map((message) => sloppiness.message(message));
      const found =
        framing === 'body'
          ? await readBodies(sloppiness, sloppy)
          : await read(sloppiness.bytes(sloppy, framing), framing);
      // Much faster than the comparison of Jest, which shows the difference.
      if (isDeepStrictEqual(found, wanted)) continue;
      expect({ seed, framing, found }).toEqual({ seed, framing, found: wanted });
    }
  },
  NIGHT_MS,
);

/** Each body is one message. */
async function readBodies(sloppiness: Sloppiness, sloppy: readonly JsonMap[]): Promise<unknown[]> {
  const readings: unknown[] = [];
  for (const [i, message] of sloppy.entries()) {
    const [found] = await messagesIn(sloppiness.bytes([message], 'body'), 'body');
    readings.push(await READERS[recorded[i]!.kind](found?.['result'] as JsonMap));
  }
  return readings;
}
