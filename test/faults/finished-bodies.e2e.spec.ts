import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, memoryOf, peakMemory } from '#testing';
import { createThread, send, type ThreadAnswer } from '../support/client.ts';
import { MetricsReader } from '../support/metrics-reader.ts';
import {
  isLong,
  POOL_MEMORY,
  startSystem,
  UNTOUCHED_MEMORY,
  upTo,
  type ApiProcess,
  type System,
} from '../support/system.ts';
import { addTenant, type Tenant } from '../support/tenants.ts';

/**
 * Three tenants send valid bodies of 8 MiB on many connections, again and again. A body that has arrived becomes strings, JSON
 * and buffers of the database's connection. Before this was counted, such bodies ended an API with 256 MiB, half
 * of it for V8's heap.
 */

const MIB = 1024 * 1024;
/** Of touched memory, without children. */
const LIMIT_BYTES = 320 * MIB;
const BODY_BYTES = 8 * MIB;
const CONNECTIONS = 12;
const DURATION_MS = isLong ? 100_000 : 15_000;

let system: System;
let api: ApiProcess;
let greedy: Tenant[];
let neighbour: Tenant;

beforeAll(async () => {
  const limit = { bytes: LIMIT_BYTES, children: POOL_MEMORY, untouched: UNTOUCHED_MEMORY };
  system = await startSystem({ env: { METRICS_PORT: '0' }, memoryLimits: { api: limit, worker: limit } });
  api = await system.startApi();
  const { pool } = system.database;
  const add = (name: string) => addTenant(pool, api.caller.baseUrl, name, { whenBusy: 'enqueue' });
  greedy = [await add('Greedy'), await add('Greedier'), await add('Greediest')];
  neighbour = await addTenant(pool, api.caller.baseUrl, 'Neighbour');
}, 120_000);
afterAll(() => system.stop());

/** A character beyond Latin-1 makes V8 keep two bytes for each character of its text. */
const textOf = (characters: number): string => '☃'.padEnd(characters, 'x');

/** Fills a body of the largest size with as many texts of this length as fit. */
function largestBody(characters: number, bodyOf: (texts: string[]) => unknown): string {
  const sizeOf = (texts: string[]): number => Buffer.byteLength(JSON.stringify(bodyOf(texts)));
  const aText = sizeOf([textOf(characters), textOf(characters)]) - sizeOf([textOf(characters)]);
  const count = Math.floor((BODY_BYTES - 1_024) / aText);
  return JSON.stringify(bodyOf(Array.from({ length: count }, () => textOf(characters))));
}

const create = largestBody(32_000, (texts) => ({
  userId: 'tester',
  input: { type: 'user.message', content: texts.map((text) => ({ type: 'text', text })) },
}));
const events = largestBody(128_000, (texts) => ({ events: texts.map((text) => ({ type: 'user_message', text })) }));

/** A client that is refused waits a little. Otherwise it would spend the machine's time on bodies that nobody reads. */
const PAUSE_MS = 100;

const newThread = (tenant: Tenant, body: unknown) =>
  send<ThreadAnswer>(tenant, 'POST', `/agents/${tenant.agentId}/threads`, body);

async function sendEvents(tenant: Tenant): Promise<number> {
  const { body: empty } = await newThread(tenant, { userId: 'u' });
  return (await send(tenant, 'POST', `/threads/${empty.thread.id}/events`, events)).status;
}

it('accepts a body of the largest size', async () => {
  expect([Buffer.byteLength(create), Buffer.byteLength(events)].every((bytes) => bytes > BODY_BYTES - 256 * 1024)).toBe(
    true,
  );
  expect((await newThread(greedy[0]!, create)).status).toBe(201);
  expect(await sendEvents(greedy[0]!)).toBe(200);
});

it(
  'bodies of 8 MiB that are sent again and again leave the process alive, and another tenant served',
  async () => {
    const until = performance.now() + DURATION_MS;
    const answers: number[] = [];
    const hostile = Array.from({ length: CONNECTIONS }, async (_, i) => {
      const tenant = greedy[i % greedy.length]!;
      while (performance.now() < until) {
        const status = i % 2 === 0 ? (await newThread(tenant, create)).status : await sendEvents(tenant);
        answers.push(status);
        if (status === 503) await sleep(PAUSE_MS);
      }
    });
    const served: number[] = [];
    const bystander = (async () => {
      while (performance.now() < until) served.push((await createThread(neighbour, 'hi')).status);
    })();
    const peak = watchAnonymous(api);
    await Promise.all([...hostile, bystander]);
    const peakBytes = peak.stop();
    const counts = new Map<number, number>();
    for (const status of answers) counts.set(status, (counts.get(status) ?? 0) + 1);
    process.stderr.write(
      `finished bodies: ${[...counts].map(([status, count]) => `${count} × ${status}`).join(', ')}; ` +
        `at most ${Math.round(peakBytes / MIB)} MiB touched; the neighbour was served ${served.length} times\n`,
    );
    peakMemory(api.process);
    expect(peakBytes).toBeLessThan(LIMIT_BYTES);
    expect([...counts.keys()].every((status) => [200, 201, 503].includes(status))).toBe(true);
    expect(answers.filter((status) => status < 300).length).toBeGreaterThan(0);
    expect(new Set(served)).toEqual(new Set([201]));
    expect(served.length).toBeGreaterThan(2);
    const reader = new MetricsReader();
    await eventually(async () => (await reader.read(api.process)).get('spool_body_bytes') === 0, {
      what: 'all bytes are given back',
    });
    expect((await newThread(greedy[0]!, create)).status).toBe(201);
  },
  upTo(120_000),
);

/** Looks at the touched private memory of the process again and again. `stop` returns the most. */
function watchAnonymous({ process: { pid } }: ApiProcess): { stop: () => number } {
  let most = 0;
  const timer = setInterval(() => {
    try {
      most = Math.max(most, memoryOf(pid, 'RssAnon'));
    } catch {
      // It has ended, which the test notices by its answers.
      clearInterval(timer);
    }
  }, 50);
  return {
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}
