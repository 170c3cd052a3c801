import { adminOperations, operations } from '#contract';
import { LoopDelay, reportTable } from '#testing';
import { delayCell, reportMissedGoals } from '../support/delays.ts';
import {
  adminRequests,
  hugeManifest,
  publicRequests,
  type LargestRequests,
  type More,
} from '../support/largest-requests.ts';
import { type Act, makeLargestWorld, type Got, type LargestWorld, type Sent } from '../support/largest-world.ts';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';

/**
 * The largest requests that each operation accepts, and large ones that it refuses, alone and on ten connections. None may
 * hold the event loop of the API process. What the kernel gives to other processes meanwhile does not count.
 */

const CONNECTIONS = 10;
/** How many requests each connection sends in one round, at least. */
const SENT_EACH = isLong ? 8 : 2;
/** Bytes. Larger bodies take turns: a process may refuse them with 503 while it parses others (docs/reliability.md). */
const LARGE_BODY = 256 * 1024;
/** The share of valid requests without such a body that must succeed at the first attempt. */
const DONE_SHARE = 0.95;
/** A process runs one of each at a time, and meanwhile returns 409. */
const ONE_AT_A_TIME = ['admin verify', 'admin verifyFiles', 'admin rebuildProjections'];

let system: System;
let loop: LoopDelay;
let world: LargestWorld;
let more: More;
const rows = new Map<string, string>();

beforeAll(async () => {
  system = await startSystem({
    manifest: { name: 'echo', harness: { name: 'echo' }, whenBusy: 'interrupt' },
    // As they are by default: other tests use fewer connections, for more processes.
    env: { DATABASE_POOL_SIZE: '10', BROWSER_TOKEN_KEYS: `k:${'a'.repeat(43)}=` },
  });
  const api = await system.startApi(LoopDelay.env);
  loop = new LoopDelay(api.process);
  world = await makeLargestWorld(system, api);
  more = await makeMore();
}, upTo(300_000));
afterAll(async () => {
  const head = ['| operation | alone: p99 / longest | on ten connections: p99 / longest |', '|---|---|---|'];
  reportTable('api-delays', [...head, ...rows.values()]);
  await system.stop();
});

/** Removes the messages that an operation has left, so that those which read everything do not read these. */
afterEach(async () => {
  const kept = [world.threadId, world.filesThreadId, world.waitingThreadId];
  await system.database.pool.query(
    `delete from events where type = 'message.added' and thread_id <> all ($1::text[])`,
    [kept],
  );
});

async function makeMore(): Promise<More> {
  const threadIds = [];
  for (let i = 0; i < CONNECTIONS; i++) {
    const { text } = await world.public('POST', `/agents/${world.agentId}/threads`, '{"userId":"u"}');
    threadIds.push((JSON.parse(text) as { thread: { id: string } }).thread.id);
  }
  const body = { organizationId: world.organizationId };
  let hugeAgentId = '';
  for (const seed of ['first', 'second']) {
    const apply = JSON.stringify({ ...body, manifests: [hugeManifest(seed)] });
    const { status, text } = await world.admin('POST', adminOperations.applyManifests.path, apply);
    expectAnswer({ status, text }, 2);
    hugeAgentId = (JSON.parse(text) as { agents: { agentId: string }[] }).agents[0]!.agentId;
  }
  return { threadIds, hugeAgentId };
}

describe('the Agent Threads API', () => {
  it.each(Object.keys(operations) as (keyof typeof operations)[])(
    '%s',
    (name) => measure(name, (on) => publicRequests(on, more)[name]),
    upTo(180_000),
  );
});

describe('the admin API', () => {
  const names = Object.keys(adminOperations) as (keyof typeof adminOperations)[];
  // It repairs what the world has that no worker did.
  const last = 'rebuildProjections';
  const ordered = [...names.filter((name) => name !== last), last] as typeof names;
  it.each(ordered)('%s', (name) => measure(`admin ${name}`, (on) => adminRequests(on, more)[name]), upTo(180_000));
});

type Acts = (on: LargestWorld) => LargestRequests;

async function measure(name: string, acts: Acts): Promise<void> {
  const sizes = { largest: 0 };
  const { done, refused } = acts(recording(world, sizes));
  let isLarge: boolean | null = null;
  expect(done.length).toBeGreaterThan(0);
  // The first requests are slower: their code is compiled.
  for (const act of done) await act(0);
  isLarge ??= sizes.largest > LARGE_BODY;
  for (const act of refused) await act(0);
  const alone = await loop.during(async () => {
    for (const act of done) expectAnswer(await act(0), 2);
    for (const act of refused) expectAnswer(await act(0), 2, 4);
  });
  const tally = done.map((): Tally => ({ sent: 0, refused: [] }));
  const together = await loop.during(async () => {
    // Sent separately, because refused large bodies take up the caller's budget.
    if (!isLarge) await onConnections(done, tally);
    if (isLarge || refused.length > 0) await onConnections([...done, ...refused], isLarge ? tally : []);
  });
  // A refusal of a valid request lasts for a moment only.
  for (const [i, act] of done.entries()) if (neverDone(tally[i])) expectAnswer(await act(0), 2);
  rows.set(name, `| \`${name}\` | ${delayCell(alone)} | ${delayCell(together)} |`);
  expectDone(name, tally, isLarge);
  reportMissedGoals(name, { alone, 'on ten connections': together });
}

/** The number of times that one valid request was sent on ten connections, and its refusals. */
interface Tally {
  sent: number;
  refused: Got[];
}

/** Sends the requests in turn on all connections at once. Too many at once get 503. */
async function onConnections(acts: readonly Act[], tally: readonly Tally[]): Promise<void> {
  const each = Math.max(SENT_EACH, Math.ceil(acts.length / CONNECTIONS));
  const connection = async (i: number): Promise<void> => {
    for (let j = 0; j < each; j++) {
      const at = (each * i + j) % acts.length;
      const answer = await acts[at]!(i);
      expectAnswer(answer, 2, 4, 5);
      const counted = tally[at];
      if (counted === undefined) continue;
      counted.sent++;
      if (answer.status > 299) counted.refused.push(answer);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, i) => connection(i)));
}

const neverDone = (act: Tally | undefined): boolean => act !== undefined && act.refused.length === act.sent;

/** Checks that valid requests are refused only for lack of room, and nearly none without a large body. */
function expectDone(name: string, tally: readonly Tally[], isLarge: boolean): void {
  const isExclusive = ONE_AT_A_TIME.includes(name);
  const refused = tally.flatMap((act) => act.refused);
  for (const answer of refused) if (!isExclusive || answer.status !== 409) expectAnswer(answer, 5);
  const sent = tally.reduce((sum, act) => sum + act.sent, 0);
  for (const act of tally) expect(act.sent).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(sent);
  if (isLarge || isExclusive || refused.length <= (1 - DONE_SHARE) * sent) return;
  throw new Error(
    `${name}: ${refused.length} of ${sent} did not succeed: ${refused.map(({ text }) => text).join(' ')}`,
  );
}

/** Returns the same world, which records the size of the largest body that it sends, bytes. */
function recording(on: LargestWorld, sizes: { largest: number }): LargestWorld {
  const record = (body: Sent['body'] = ''): void => {
    sizes.largest = Math.max(sizes.largest, Buffer.byteLength(body));
  };
  return {
    ...on,
    public: (method, path, body, headers) => (record(body), on.public(method, path, body, headers)),
    admin: (method, path, body) => (record(body), on.admin(method, path, body)),
  };
}

/** Of the fifth class, only 503 for want of room. */
function expectAnswer({ status, text }: Got, ...classes: number[]): void {
  if (classes.includes(5) && status === 503) return;
  if (!classes.includes(Math.floor(status / 100))) throw new Error(`answered ${status}: ${text.slice(0, 500)}`);
}
