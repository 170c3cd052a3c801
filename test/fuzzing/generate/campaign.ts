import fc from 'fast-check';
import type { SpawnedNode } from '#testing';
import { AnswerRules } from './answer-rules.ts';
import { asShell, buildRequest, type BuiltRequest } from './build-request.ts';
import { Connections, type Outcome, type WireAnswer } from './connection.ts';
import { operationsOf, type ApiDocument, type Operation } from './document.ts';
import { requestPlans, type RequestPlan } from './requests.ts';
import { Tally } from './tally.ts';
import { LARGE_TWISTS } from './json-bodies.ts';
import { TRANSPORT_TWISTS } from './transport.ts';
import { planTo, planToSendLarge, type World } from './world.ts';

/** One process under test. */
export interface Target {
  process: SpawnedNode;
  /** {base_url}. */
  baseUrl: string;
  /** The largest JSON body that it takes. */
  bodyLimit: number;
}

/** An answer that broke a rule. */
interface Finding {
  plan: RequestPlan;
  request: BuiltRequest;
  outcome: Outcome;
  problems: string[];
}

/** A request that takes longer is left hanging. The slowest honest one waits 2 s for a database. */
const TIMEOUT_MS = 10_000;
const CONNECTIONS = 6;
/** Plans are made that many at a time, and the world is replenished between. */
const CHUNK = 250;
/** Small, because few gaps are left and most parts leave none. */
const CHUNK_FOR_GAPS = 50;
const MOST_PARTS_FOR_GAPS = 20;
const SHRINK_MS = 30_000;
/** Shrinking takes its time. */
const MOST_EXPLAINED = 6;
/** As much of a problem as is the same in all findings of its kind. */
const KIND_LENGTH = 40;
const FEWEST_THREADS = 24;
const FEWEST_DRAFTS = 12;
const CANCELLED_A_CHUNK = 4;

/** Each part of a run has plans of its own, wherever it begins, and so has each run. */
const partSeed = (seed: number, part: number): number => (Math.imul(seed, 0x9e3779b1) + part) | 0;

/** Sends generated requests, several at a time, to all targets, and holds each answer against the rules. */
export class Campaign {
  readonly operations: Operation[];
  readonly tally = new Tally();
  private readonly plans: fc.Arbitrary<RequestPlan>;
  private readonly rules: AnswerRules;
  private readonly connections: Connections[];

  constructor(
    private readonly document: ApiDocument,
    private readonly world: World,
    private readonly tokens: Record<string, string>,
    private readonly targets: readonly Target[],
  ) {
    this.operations = operationsOf(document);
    this.plans = requestPlans(document);
    this.rules = new AnswerRules(document);
    this.connections = targets.map(({ baseUrl }) => new Connections(baseUrl));
  }

  /**
   * Sends every kind of large body to each target, several times: until it has had to do with them, a process holds less
   * memory than it does from then on (glibc keeps what it was given, and takes freed blocks of 8 MiB into its heap).
   */
  async growUp(rounds: number): Promise<void> {
    const plans = this.operations.flatMap((operation) =>
      LARGE_TWISTS.flatMap((twist) => this.targets.map((_, api) => planToSendLarge(operation, twist, api))),
    );
    for (let round = 0; round < rounds; round++) {
      const found = await this.sendAll(plans.filter((plan) => plan !== null));
      if (found.length > 0) throw new Error(found.map((one) => this.describe(one)).join('\n\n'));
    }
  }

  /** Throws where answers broke a rule, with the smallest requests that still do. */
  async run(seed: number, count: number, from = 0): Promise<void> {
    for (let done = from; done < count; done += CHUNK) {
      await this.sendPart(this.plans, seed, done, Math.min(CHUNK, count - done));
    }
  }

  /** Sends what chance has left out: requests of operations that never succeeded or were never refused, and of those alone. */
  async fillGaps(seed: number): Promise<void> {
    for (let part = -1; part >= -MOST_PARTS_FOR_GAPS; part--) {
      const gaps = this.tally.untried(this.operations).map(({ operation }) => operation);
      if (gaps.length === 0) return;
      await this.sendPart(requestPlans(this.document, gaps), seed, part, CHUNK_FOR_GAPS);
    }
  }

  close(): void {
    for (const connections of this.connections) connections.close();
  }

  private async sendPart(from: fc.Arbitrary<RequestPlan>, seed: number, part: number, numRuns: number): Promise<void> {
    await this.replenish();
    const plans = fc.sample(from, { seed: partSeed(seed, part), numRuns });
    const found = await this.sendAll(plans);
    const told = found
      .slice(0, MOST_EXPLAINED)
      .map((one) => this.explain(one, from, { seed: partSeed(seed, part), path: String(plans.indexOf(one.plan)) }));
    if (told.length === 0) return;
    const first = `${found.length} kinds of wrong answers. Repeat with SPOOL_SEED=${seed} (part ${part}).`;
    throw new Error([first, ...(await Promise.all(told))].join('\n\n'));
  }

  /** The first finding of each kind. */
  private async sendAll(plans: RequestPlan[]): Promise<Finding[]> {
    const found = new Map<string, Finding>();
    let next = 0;
    const loop = async (): Promise<void> => {
      while (next < plans.length) {
        const finding = await this.attempt(plans[next++]!);
        const kind = finding?.problems[0]?.slice(0, KIND_LENGTH);
        if (finding && kind !== undefined && !found.has(kind)) found.set(kind, finding);
      }
    };
    await Promise.all(Array.from({ length: CONNECTIONS }, loop));
    return [...found.values()];
  }

  private async attempt(plan: RequestPlan): Promise<Finding | null> {
    const { request, outcome } = await this.send(plan);
    this.tally.count(request, outcome);
    const problems = this.rules.problemsOf(request, outcome);
    if (typeof outcome !== 'string') this.world.learn(request, outcome);
    return problems.length === 0 ? null : { plan, request, outcome, problems };
  }

  private async send(plan: RequestPlan): Promise<{ request: BuiltRequest; outcome: Outcome }> {
    const at = plan.api % this.targets.length;
    const { baseUrl, bodyLimit } = this.targets[at]!;
    const { host, pathname } = new URL(baseUrl);
    const request = buildRequest(plan, {
      resolve: (pick, of) => this.world.resolve(pick, of),
      tokens: this.tokens,
      host,
      basePath: pathname,
      bodyLimit,
    });
    const { bytes, method } = request;
    const isOddHttp = plan.transport !== 'none';
    const endsEarly = TRANSPORT_TWISTS[plan.transport]!.endsEarly === true;
    const outcome = await this.connections[at]!.send({
      bytes,
      method,
      endsEarly,
      last: isOddHttp,
      timeoutMs: TIMEOUT_MS,
    });
    return { request, outcome };
  }

  /** Makes up for what was deleted: Threads in all states, and drafts. */
  private async replenish(): Promise<void> {
    for (let i = 0; i < CANCELLED_A_CHUNK; i++) await this.makeCancelledRun();
    const texts = ['Hello', '/confirm', '/confirm', '/artifact', '/fail', '/think 20s'];
    for (const owner of ['own', 'other', 'service']) {
      const wanted = owner === 'own' ? FEWEST_THREADS : 3;
      for (let i = this.world.count(owner); i < wanted; i++) await this.makeThread(owner, texts[i % texts.length]!);
      await this.makeDrafts(owner, owner === 'own' ? FEWEST_DRAFTS : 2);
    }
  }

  private async makeThread(owner: string, text: string): Promise<string> {
    const input = { type: 'user.message', content: [{ type: 'text', text }] };
    const agent = { $pick: 'agentId', n: 0, lower: false };
    const create = planTo(this.operations, 'POST /agents/{agentId}/threads', { userId: 'u', input }, [
      '/agents/',
      agent,
      '/threads',
    ]);
    if (create === null) throw new Error('the document has no way to create a Thread');
    const { body } = await this.attemptOrThrow({ ...create, caller: owner });
    return (JSON.parse(body.toString()) as { thread: { id: string } }).thread.id;
  }

  /** What a retry can be of. */
  private async makeCancelledRun(): Promise<void> {
    const threadId = await this.makeThread('own', '/confirm');
    const value = { events: [{ type: 'user_interrupt' }] };
    const path = ['/threads/', threadId, '/events'];
    const interrupt = planTo(this.operations, 'POST /threads/{threadId}/events', value, path);
    if (interrupt) await this.attemptOrThrow(interrupt);
  }

  private async makeDrafts(owner: string, wanted: number): Promise<void> {
    const agent = { $pick: 'agentId', n: 0, lower: false };
    const upload = planTo(this.operations, 'POST /agents/{agentId}/files', undefined, ['/agents/', agent, '/files']);
    if (!upload) return;
    const parts = [{ name: 'file', fileName: 'notes.txt', type: 'text/plain', content: 'some notes' }];
    for (let i = this.world.countDrafts(owner); i < wanted; i++) {
      await this.attemptOrThrow({ ...upload, caller: owner, body: { kind: 'multipart', parts, twist: 'none', n: 0 } });
    }
  }

  private async attemptOrThrow(plan: RequestPlan): Promise<WireAnswer> {
    const { request, outcome } = await this.send(plan);
    if (typeof outcome === 'string' || outcome.status >= 300) {
      throw new Error(`${request.method} ${request.target}: ${JSON.stringify(outcome)}`);
    }
    this.world.learn(request, outcome);
    return outcome;
  }

  /** Repeats the finding and makes it smaller. */
  private async explain(
    found: Finding,
    from: fc.Arbitrary<RequestPlan>,
    at: { seed: number; path: string },
  ): Promise<string> {
    let smallest: Finding | null = null;
    const again = fc.asyncProperty(from, async (plan) => {
      const finding = await this.attempt(plan);
      smallest = finding ?? smallest;
      return finding === null;
    });
    await fc.check(again, { ...at, endOnFailure: false, interruptAfterTimeLimit: SHRINK_MS });
    const last = smallest === null ? 'It did not fail again.' : `Smallest: ${this.describe(smallest)}`;
    return `Request ${at.path}: ${this.describe(found)}\n\n${last}`;
  }

  /** What the process wrote of a failure. */
  private logOf(outcome: Outcome): string[] {
    const id = typeof outcome === 'string' ? undefined : outcome.headers['x-request-id'];
    if (id === undefined || typeof outcome === 'string' || outcome.status < 500) return [];
    return this.targets.flatMap(({ process }) =>
      process
        .output()
        .split('\n')
        .filter((line) => line.includes(id)),
    );
  }

  private describe({ request, outcome, problems }: Finding): string {
    const { plan, operation } = request;
    const answered =
      typeof outcome === 'string'
        ? outcome
        : `${outcome.status} ${JSON.stringify(outcome.headers)}\n${outcome.body.toString().slice(0, 1_000)}`;
    return [
      `${operation.name}: ${problems.join('; ')}`,
      `${plan.expected} (${plan.why.join('; ') || 'nothing odd'}), sent by ${plan.caller}`,
      asShell(request, this.targets[plan.api % this.targets.length]!.baseUrl),
      `answered ${answered}`,
      ...this.logOf(outcome),
    ].join('\n');
  }
}
