import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccessStore } from '#access';
import { createAgent, publishAgentVersion, type AgentManifestInput } from '#agents';
import { reportFigure } from '#testing';
import { isLong, startSystem, upTo, type System } from '../support/system.ts';
import { Campaign, type Target } from './generate/campaign.ts';
import type { ApiDocument } from './generate/document.ts';
import { memoryOf, type Memory, TELLS_MEMORY } from './generate/memory.ts';
import { World } from './generate/world.ts';

/** Each found something once; they are sent first, so many requests each. */
const SEEDS_THAT_FAILED = [1, 3, 4];
const REQUESTS_OF_A_SEED = 250;

const REQUESTS = isLong ? 100_000 : 400;
/** Rounds of large bodies before the memory is measured. */
const ROUNDS_OF_LARGE = isLong ? 3 : 1;
const SEED = Number(process.env['SPOOL_SEED'] ?? Math.floor(Math.random() * 2 ** 30));
/** One process takes small bodies only, so that bodies around the limit are cheap; the other as many as in production. */
const SMALL_BODY = 1024 * 1024;
const USUAL_BODY = 8 * 1024 * 1024;
const MOST_GROWTH = 32 * 1024 * 1024;

let dataDir: string;
let system: System;
let targets: Target[];
let campaign: Campaign;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'spool-generated-'));
  system = await startSystem({ manifest: { harness: { name: 'echo', pauseMs: 0 } } });
  const env = {
    ...TELLS_MEMORY,
    DATA_DIR: dataDir,
    RATE_LIMIT_PER_MINUTE: '1000000000',
    BROWSER_TOKEN_KEYS: `k:${'a'.repeat(43)}=`,
    STREAMS_PER_TOKEN: '100000',
    STREAMS_PER_THREAD: '100000',
    // Has room for many of the largest bodies at once, so that none is refused for its memory.
    BODY_BUDGET_BYTES: String(1024 ** 3),
    BODY_BUDGET_PERCENT_PER_ORGANIZATION: '100',
  };
  const [small, usual] = await Promise.all([
    system.startApi({ ...env, BODY_LIMIT_BYTES: String(SMALL_BODY) }),
    system.startApi(env),
    system.startWorker({ DATA_DIR: dataDir }),
  ]);
  targets = [
    { process: small.process, baseUrl: small.caller.baseUrl, bodyLimit: SMALL_BODY },
    { process: usual.process, baseUrl: usual.caller.baseUrl, bodyLimit: USUAL_BODY },
  ];
  const document = (await (await fetch(`${small.caller.baseUrl}/openapi.json`)).json()) as ApiDocument;
  const { agentIds, tokens } = await populate(system);
  campaign = new Campaign(document, new World(agentIds), tokens, targets);
}, 90_000);

afterAll(async () => {
  campaign?.close();
  await system?.stop();
  await rm(dataDir, { recursive: true, force: true });
});

test(
  `F15: no generated request gets what the document does not say, and the memory stays flat (SPOOL_SEED=${SEED})`,
  async () => {
    for (const seed of SEEDS_THAT_FAILED) await campaign.run(seed, REQUESTS_OF_A_SEED);
    await campaign.growUp(ROUNDS_OF_LARGE);
    const memory: Memory[][] = [];
    for (let tenth = 1; tenth <= 10; tenth++) {
      await campaign.run(SEED, (tenth * REQUESTS) / 10, ((tenth - 1) * REQUESTS) / 10);
      memory.push(await Promise.all(targets.map(({ process }) => memoryOf(process))));
    }
    await campaign.fillGaps(SEED);
    report(`SPOOL_SEED=${SEED}: ${String(campaign.tally)}`);
    for (const i of targets.keys()) {
      const series = (what: keyof Memory) => memory.map((of) => inMiB(of[i]![what])).join(', ');
      report(`process ${i + 1}, after each tenth: RSS ${series('rss')} MiB, heap ${series('heap')} MiB`);
    }
    expect(campaign.tally.untried(campaign.operations).map(({ why }) => why)).toEqual([]);
    expect(campaign.tally.successes / campaign.tally.total).toBeGreaterThan(0.3);
    for (const i of targets.keys()) expect(memory.at(-1)![i]!.rss - memory[0]![i]!.rss).toBeLessThan(MOST_GROWTH);
    for (const { process } of targets) expect(errorLines(process.output())).toEqual([]);
  },
  upTo(300_000),
);

const inMiB = (bytes: number): string => (bytes / 1024 / 1024).toFixed(0);

/** Into the output of the run: what was answered belongs to the result. */
function report(...lines: string[]): void {
  reportFigure(lines.join('\n'));
}

/** What the process itself holds for a failure . */
const errorLines = (output: string): string[] =>
  output.split('\n').filter((line) => /^\{"level":"(error|fatal)"/.test(line));

/** People, services and agents in the states that access is decided by. */
async function populate({ database: { pool }, personToken, agentId }: System) {
  const access = new AccessStore(pool);
  const { rows } = await pool.query<{ organization_id: string }>('select organization_id from agents where id = $1', [
    agentId,
  ]);
  const organizationId = rows[0]!.organization_id;
  const person = async (member: boolean) => {
    const personId = await access.createPerson('Someone');
    if (member) await access.addMember(organizationId, personId);
    return personId;
  };
  const mint = async (personId: string, more: { expiresAt?: Date } = {}) =>
    access.mintToken({ kind: 'person', personId, name: 'generated', ...more });
  const agent = async (
    manifest: Partial<AgentManifestInput>,
    more: { access?: 'invited'; published?: boolean } = {},
  ) => {
    const whole = { name: 'echo', harness: { name: 'echo' }, ...manifest };
    const id = await createAgent(pool, {
      organizationId,
      manifest: whole,
      ...(more.access ? { access: more.access } : {}),
    });
    if (more.published !== false) await publishAgentVersion(pool, id, whole);
    return id;
  };
  const agentIds = [
    agentId,
    await agent({ whenBusy: 'enqueue' }),
    await agent({ whenBusy: 'interrupt', kind: 'pet' }),
    await agent({}, { published: false }),
    await agent({}, { access: 'invited' }),
    await agent({ harness: { name: 'missing' } }),
  ];
  const member = await person(true);
  const revoked = await mint(member);
  await access.revokeToken(revoked.id);
  const service = await access.mintToken({
    kind: 'service',
    organizationId,
    agentIds: [agentId, agentIds[1]!],
    name: 'generated',
  });
  const tokens = {
    own: personToken,
    other: (await mint(member)).token,
    service: service.token,
    outsider: (await mint(await person(false))).token,
    revoked: revoked.token,
    expired: (await mint(member, { expiresAt: new Date(0) })).token,
  };
  return { agentIds, tokens };
}
