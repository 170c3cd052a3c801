import { connect, type Socket } from 'node:net';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion } from '#agents';
import { eventually, peakMemory } from '#testing';
import { createThread, type Caller } from '../support/client.ts';
import { MetricsReader } from '../support/metrics-reader.ts';
import { isLong, POOL_MEMORY, startSystem, upTo, type ApiProcess, type System } from '../support/system.ts';

/**
 * One token stalls many JSON bodies of 8 MiB, each of which has arrived but for its end. Before bodies were admitted, 150
 * held 1.1 GB and ended a process with 1 GiB. The API has a memory limit.
 */

const MIB = 1024 * 1024;
const BODY_BYTES = 8 * MIB;
/** In the gate still twice the memory of the API. */
const BODIES = isLong ? 150 : 60;
/** How long those with room may stall: long enough for all bytes to have come. */
const BODY_TIMEOUT_MS = isLong ? 30_000 : 2_000;
/** An API starts with less: docs/operations/run-memory.md. */
const LIMIT_BYTES = 256 * MIB;

let system: System;
let api: ApiProcess;
let neighbour: Caller;
const sockets: Socket[] = [];

beforeAll(async () => {
  const limit = { bytes: LIMIT_BYTES, children: POOL_MEMORY };
  system = await startSystem({ memoryLimits: { api: limit, worker: limit } });
  api = await system.startApi({ METRICS_PORT: '0', BODY_TIMEOUT_MS: String(BODY_TIMEOUT_MS), BODY_MS_PER_MIB: '0' });
  neighbour = await newNeighbour(system, api.caller);
}, 120_000);
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await system.stop();
});

it(
  'stalled bodies of 8 MiB, more than the memory holds, leave the process alive, and another token served',
  async () => {
    const bystander = serveWhile();
    // Again and again until enough was served meanwhile: on a busy machine, one round is over after a few requests of the other.
    while (bystander.served() <= 10) {
      const stalled = Promise.all(Array.from({ length: BODIES }, () => stall(api.caller)));
      const answers = await Promise.race([stalled, bystander.refused]);
      // The share of an organization has room for four at most, and for one with so little memory. All others are refused.
      expect(answers.filter((status) => status === 503).length).toBeGreaterThanOrEqual(BODIES - 4);
      // Those with room are refused when they stall for too long.
      expect(answers.every((status) => status === 503 || status === 408)).toBe(true);
    }
    await bystander.stop();
    expect(peakMemory(api.process)).toBeLessThan(LIMIT_BYTES);
    for (const socket of sockets) socket.destroy();
    const reader = new MetricsReader();
    await eventually(async () => (await reader.read(api.process)).get('spool_body_bytes') === 0, {
      what: 'all bytes are given back',
    });
    expect((await createThread(api.caller, 'still there')).status).toBe(201);
  },
  upTo(120_000),
);

/** Sends all but the end of a body, and returns the status of the answer. */
async function stall({ baseUrl, token, agentId }: Caller): Promise<number> {
  const { hostname, port, pathname } = new URL(baseUrl);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  let answer = '';
  socket.setEncoding('utf8').on('data', (data: string) => (answer += data));
  socket.on('error', () => undefined);
  const head = [
    `POST ${pathname}/agents/${agentId}/threads HTTP/1.1`,
    ...['Host: x', `Authorization: Bearer ${token}`, 'Content-Type: application/json'],
    `Content-Length: ${BODY_BYTES}`,
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n{"userId":"`);
  socket.write(Buffer.alloc(BODY_BYTES - 1_024, 'x'));
  await eventually(() => answer.includes('\r\n'), { what: 'an answer', timeoutMs: 60_000 });
  return Number(answer.split(' ')[1]);
}

/** Lets the neighbour create Threads one after the other. `served` returns how many; `refused` and `stop` throw if one was refused. */
function serveWhile(): { served: () => number; refused: Promise<never>; stop: () => Promise<void> } {
  let served = 0;
  let isOver = false;
  const serving = (async () => {
    while (!isOver) {
      expect((await createThread(neighbour, 'hi')).status).toBe(201);
      served++;
    }
  })();
  const refused = new Promise<never>((_, reject) => void serving.catch(reject));
  refused.catch(() => undefined);
  return {
    ...{ served: () => served, refused },
    stop: () => {
      isOver = true;
      return serving;
    },
  };
}

async function newNeighbour({ database: { pool } }: System, caller: Caller): Promise<Caller> {
  const access = new AccessStore(pool);
  const organizationId = await access.createOrganization('Neighbours');
  const personId = await access.createPerson('Neighbour');
  await access.addMember(organizationId, personId);
  const manifest = { name: 'echo', harness: { name: 'echo' } };
  const agentId = await createAgent(pool, { organizationId, ownerPersonId: personId, manifest });
  await publishAgentVersion(pool, agentId, manifest);
  const { token } = await access.mintToken({ kind: 'person', personId, name: 'e2e' });
  return { ...caller, agentId, token };
}
