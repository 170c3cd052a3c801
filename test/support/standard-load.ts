import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from '#testing';
import type { Decision, Decided, Records, Said, StandardLoadParts, Watched } from './client-records.ts';
import type { LogEntry, ThreadAnswer } from './client.ts';
import { KeyedClient, type KeyedRequest, type Sent } from './keyed-client.ts';
import { LeanReader } from './lean-reader.ts';
import type { ToolName } from './fake-provider-calls.ts';
import { expectHeld } from './standard-load-oracle.ts';

export interface StandardLoadOptions {
  threads?: number;
  /** A Thread's, one after the other; at least so many, and on for as long as this is true. */
  messages?: number;
  keepOn?: () => boolean;
  pieces?: number;
  /** Before each piece, milliseconds. */
  pauseMs?: number;
  readers?: number;
  /** Messages do not wait for the Run before: for an agent with `whenBusy: enqueue`. */
  enqueue?: boolean;
}

/** Of one message, from the seed alone. */
interface Planned {
  toolName: ToolName;
  /** Where its tool needs one. */
  decision: Decision;
}

const PATIENCE = { giveUpMs: 5 * 60_000, pauseMs: 100, answerMs: 10_000 };
const LOOK_MS = 50;
/** Then the plan begins again; no multiple of ten, so that every Thread has its turn at each. */
const PLANNED = 1_001;
const TERMINAL = ['completed', 'failed', 'cancelled', 'expired'];
/** Readers are cut off after so many entries, or after so long: a stream may stall. */
const MAX_ENTRIES_A_VISIT = 40;
const VISIT_MS = 3_000;

/**
 * The load under which faults happen (docs/reliability.md#the-load): Threads with one message after the other, each
 * of pieces of text and a tool, a tenth with a confirmation; clients that send until they know, and readers with a
 * bad line.
 */
export class StandardLoad implements Records {
  readonly threads: number;
  /** A Thread's, at least. */
  readonly messages: number;
  readonly userId: string;
  readonly said: Said[] = [];
  readonly decided: Decided[] = [];
  readonly watched: Watched[] = [];
  readonly faults: { from: number; to: number }[] = [];
  readonly client: KeyedClient;
  /** The Runs that have not ended, by id. */
  private readonly waiting = new Map<string, { decision: Decision; end: () => void }>();
  private readonly deciding = new Set<string>();
  private readonly plan: readonly Planned[];
  private readonly talking: Promise<unknown>;
  private readonly reading: Promise<void>[] = [];
  asked = 0;
  private isOver = false;
  private isAbandoned = false;
  private failure: unknown;

  constructor(
    readonly parts: StandardLoadParts,
    private readonly options: StandardLoadOptions = {},
  ) {
    const { callers, random } = parts;
    this.threads = options.threads ?? 50;
    this.messages = options.messages ?? 4;
    this.userId = `load ${random.seed} ${Date.now()}`;
    this.client = new KeyedClient(callers, PATIENCE);
    this.plan = Array.from({ length: PLANNED }, (_, i) => ({
      // A tenth, and always some.
      toolName: i % 10 === 3 ? 'note' : random.pick(['act', 'lookup']),
      decision: random.pick(['allow_once', 'allow_once', 'reject_once']),
    }));
    const isWatched = new Set(random.sample(Math.min(this.threads, options.readers ?? 8), this.threads));
    const talks = Array.from({ length: this.threads }, (_, t) => this.talk(t, isWatched.has(t)));
    this.talking = this.told(Promise.all(talks).finally(() => (this.isOver = true)));
    void this.told(this.lookAtRuns());
  }

  /** Something is wrong from now on: what clients are answered does not count until `healthy`. */
  faulty(): void {
    this.faults.push({ from: Date.now(), to: Infinity });
  }

  healthy(): void {
    this.faults.at(-1)!.to = Date.now();
  }

  /** How many Runs have ended, as far as the clients know. */
  get ended(): number {
    return this.said.length - this.waiting.size;
  }

  /** All messages are answered, and the readers have seen everything. Rejects when a client was told what it must not be. */
  async finished(timeoutMs: number): Promise<void> {
    await eventually(() => this.failure !== undefined || this.isOver, { what: 'all Runs have ended', timeoutMs });
    await this.talking;
    let isRead = false;
    const all = Promise.all(this.reading).then(() => (isRead = true));
    await eventually(() => isRead || this.failure !== undefined, { what: 'readers see all', timeoutMs: 30_000 });
    await all;
  }

  /** Stops sending, looking and reading, whatever is open. */
  abandon(): void {
    this.isAbandoned = true;
    this.client.giveUp();
  }

  /** What must hold after any fault, of everything that this load has done. */
  holds(): Promise<void> {
    return expectHeld(this, this.parts, this.client);
  }

  /** What fails is told by `finished`. */
  private told<T>(work: Promise<T>): Promise<T> {
    work.catch((error: unknown) => (this.failure ??= error));
    return work;
  }

  private async talk(t: number, isWatched: boolean): Promise<void> {
    let threadId: string | undefined;
    const ended: Promise<void>[] = [];
    const { keepOn = () => false } = this.options;
    for (let m = 0; m < this.messages || keepOn(); m++) {
      const planned = this.plan[(t + m * (this.threads + 1)) % PLANNED]!;
      const said = await this.say(`${t}.${m}`, planned.toolName, threadId);
      ({ threadId } = said);
      if (m === 0 && isWatched) this.reading.push(this.told(this.read(threadId)));
      const { decision } = planned;
      const end = new Promise<void>((resolve) => this.waiting.set(said.runId, { decision, end: resolve }));
      if (!this.options.enqueue) await end;
      ended.push(end);
    }
    await Promise.all(ended);
    await this.expectIdle(t, threadId!);
  }

  private async say(name: string, toolName: ToolName, threadId: string | undefined): Promise<Said> {
    this.asked++;
    const { random, callers, fakeProvider } = this.parts;
    const { pieces = 20, pauseMs = 10 } = this.options;
    const text = fakeProvider.textOf(name, { pieces, pauseMs, tools: [toolName] });
    const key = `${this.userId} ${name}`;
    const input = { type: 'user.message', content: [{ type: 'text', text }] };
    const request: KeyedRequest =
      threadId === undefined
        ? { key, path: `/agents/${callers[0]!().agentId}/threads`, body: { userId: this.userId, input } }
        : { key, path: `/threads/${threadId}/events`, body: { events: [{ type: 'user_message', text }] } };
    const said = { ...acknowledged(await this.client.call(random.below(callers.length), request)), text };
    this.said.push({ ...said, request });
    return this.said.at(-1)!;
  }

  /** One look for all: so many clients that ask for themselves would be a load of their own. */
  private async lookAtRuns(): Promise<void> {
    const { pool } = this.parts.database;
    for (; !this.isOver && !this.isAbandoned; await sleep(LOOK_MS)) {
      type Row = { runId: string; threadId: string; status: string };
      const { rows } = await pool
        .query<Row>(
          `select run_id as "runId", thread_id as "threadId", status from run_summaries
           where run_id = any ($1) and status = any ($2)`,
          [[...this.waiting.keys()], [...TERMINAL, 'waiting_input']],
        )
        .catch(() => ({ rows: [] as Row[] })); // it may be the fault
      for (const { runId, threadId, status } of rows) {
        const { decision, end } = this.waiting.get(runId)!;
        if (status === 'waiting_input') void this.told(this.decide(runId, threadId, decision));
        else end();
        if (status !== 'waiting_input') this.waiting.delete(runId);
      }
    }
  }

  private async decide(runId: string, threadId: string, decision: Decision): Promise<void> {
    if (this.deciding.has(runId)) return;
    this.deciding.add(runId);
    const { database, random, callers } = this.parts;
    const sql = `select data->>'requestId' as "requestId" from events
                 where thread_id = $1 and run_id = $2 and type = 'tool.confirmation_requested'`;
    type Row = { requestId: string };
    const found = await database.pool.query<Row>(sql, [threadId, runId]).catch(() => null);
    if (found === null) return void this.deciding.delete(runId); // it may be the fault: at the next look
    const { requestId } = found.rows[0]!;
    const body = { events: [{ type: 'permission_decision', requestId, decision }] };
    const request = { key: `${this.userId} ${requestId}`, path: `/threads/${threadId}/events`, body };
    await this.client.call(random.below(callers.length), request);
    this.decided.push({ threadId, requestId, decision, request });
  }

  /** Whoever knows that all is over is told so by any api. */
  private async expectIdle(t: number, threadId: string): Promise<void> {
    const path = `/threads/${threadId}`;
    const { text } = await this.client.call(t % this.parts.callers.length, { key: `look at ${t}`, path });
    const { thread, run } = JSON.parse(text) as ThreadAnswer;
    if (thread.status !== 'IDLE' || run?.status !== 'completed') throw new Error(`a Thread that is over shows ${text}`);
  }

  /** From any api to the next, by Last-Event-ID, until all is seen. */
  private async read(threadId: string): Promise<void> {
    const { callers, random } = this.parts;
    const watched: Watched = { threadId, seen: [] };
    this.watched.push(watched);
    let cut = (): void => undefined;
    let left = 0;
    const reader = new LeanReader(threadId, (_id, data) => {
      watched.seen.push(JSON.parse(data) as LogEntry);
      if (--left <= 0) cut();
    });
    for (let visit = random.below(callers.length); !this.isAbandoned && !(await this.isSeen(reader)); visit++) {
      left = 1 + random.below(MAX_ENTRIES_A_VISIT);
      const gone = new Promise<void>((resolve) => (cut = reader.onGone = resolve));
      const visited = reader.visit(callers[visit % callers.length]!()).then(
        () => gone,
        () => sleep(PATIENCE.pauseMs), // away, or ending
      );
      const over = new AbortController();
      await Promise.race([visited, sleep(VISIT_MS, undefined, { signal: over.signal }), this.seenLater(reader, over)]);
      over.abort();
      reader.leave();
    }
  }

  private async seenLater(reader: LeanReader, { signal }: AbortController): Promise<void> {
    while (!signal.aborted && !(this.isOver && (await this.isSeen(reader)))) await sleep(LOOK_MS);
  }

  private async isSeen({ threadId, lastId }: LeanReader): Promise<boolean> {
    if (!this.isOver || lastId === undefined) return false;
    const sql = 'select max(id) as last from events where thread_id = $1 and public';
    const { rows } = await this.parts.database.pool.query<{ last: string }>(sql, [threadId]);
    return lastId >= rows[0]!.last;
  }
}

type Answers = ThreadAnswer & { events: { run: { id: string } | null }[] };

function acknowledged({ text }: Sent): { threadId: string; runId: string } {
  const { thread, run, events } = JSON.parse(text) as Answers;
  return { threadId: thread.id, runId: (events === undefined ? run : events[0]!.run)!.id };
}
