import type { Command, PermissionDecision, RunLimits, Thread } from '#domain';
import { absentThread, type CommandResult, type LoadedThread } from '#event-store';
import { newId } from '#platform';
import type { Faults } from './faults.ts';
import type { Api } from './nodes.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';
import type { Tables } from './tables.ts';

/** One call as its caller knows it, over all its tries. */
export interface CallRecord {
  key: string;
  kind: string;
  threadId: string;
  /** Of the Runs that its tries would have made: at most one of them is there. */
  runIds: string[];
  requestId: string | null;
  outcome: 'ok' | 'refused' | 'unknown';
  /** Whether its caller waits for no answer any more. */
  done: boolean;
}

export interface CallersOptions {
  scheduler: Scheduler;
  faults: Faults;
  tables: Tables;
  /** The API processes that are up. */
  apis: () => Api[];
  organizations: readonly string[];
  trace: (what: () => string) => void;
}

type Work = (api: Api) => Promise<Pick<CommandResult, 'outcome'>>;

const ANSWER_WITHIN_MS = 6_000;
const TRIES = 3;
const WHEN_BUSY = ['reject', 'enqueue', 'interrupt'] as const;
const DECISIONS: PermissionDecision[] = ['allow_once', 'allow_once', 'reject_once'];

/** Those who create Threads, talk, decide, interrupt, archive and delete, all on the same few Threads. */
export class Callers {
  readonly records: CallRecord[] = [];
  readonly threadIds: string[] = [];
  /** Threads that somebody has asked to delete. */
  readonly deleting = new Set<string>();
  private keys = 0;

  constructor(private readonly options: CallersOptions) {}

  /** One caller, who acts until that time; runs as its own process. */
  async act(self: SimulatedProcess, until: number, pauseMs: number): Promise<void> {
    const { scheduler, faults } = this.options;
    while (scheduler.now < until) {
      await this.actOnce(self);
      await this.sleep(self, faults.between(0, 2 * pauseMs));
    }
  }

  private sleep(self: SimulatedProcess, ms: number): Promise<void> {
    return new Promise((resolve) => this.options.scheduler.after(ms, self, resolve));
  }

  private async actOnce(self: SimulatedProcess): Promise<void> {
    const { random } = this.options.scheduler;
    const threadId = this.threadIds.length === 0 ? undefined : random.pick(this.threadIds);
    if (threadId === undefined || random.below(5) === 0) return this.create(self);
    const state = this.options.tables.stateOf(threadId);
    if (state.lifecycle === 'none') return;
    const waiting = state.runs.find(({ status }) => status === 'waiting_input');
    const choice = random.below(20);
    if (waiting !== undefined && choice < 12) return this.decideAll(self, threadId, state);
    if (choice < 11) return this.message(self, threadId);
    if (choice < 14)
      return this.simply(self, threadId, { type: 'interrupt', runId: this.anyRun(state), by: self.name });
    if (choice < 16) return this.retry(self, threadId, state);
    if (choice < 17) return this.simply(self, threadId, { type: 'archive' });
    if (choice < 18) return this.simply(self, threadId, { type: 'unarchive' });
    if (choice < 19 && random.below(3) === 0) return this.simply(self, threadId, { type: 'terminate_thread' });
    if (choice === 19 && random.below(2) === 0) return this.remove(self, threadId);
  }

  private create(self: SimulatedProcess): Promise<void> {
    const { random } = this.options.scheduler;
    const organizationId = random.pick(this.options.organizations);
    const agents = [...this.options.tables.agents].filter(([, agent]) => agent.organizationId === organizationId);
    const owner = { personId: self.name, serviceTokenId: null };
    const create: Command = {
      type: 'create_thread',
      agentId: random.pick(agents)[0],
      organizationId,
      kind: 'cattle',
      userId: 'U',
      owner,
    };
    const record = this.newRecord(self, 'create', newId());
    const limits = this.anyLimits();
    return this.call(self, record, (api) => {
      // As the API does it: another try is another Thread, and the key tells which of them is there.
      const threadId = newId();
      record.threadId = threadId;
      const commands = [create, this.messageCommand(self, record, 'reject', limits)];
      return api.handler.handle({ threadId, commands, from: absentThread(threadId), ...this.keyed(record) });
    }).then(() => {
      const stored = this.options.tables.keys.get(`token ${record.key}`);
      if (record.outcome === 'ok' && stored !== undefined) this.threadIds.push(stored.threadId);
    });
  }

  private message(self: SimulatedProcess, threadId: string): Promise<void> {
    const whenBusy = this.options.scheduler.random.pick(WHEN_BUSY);
    const record = this.newRecord(self, `message (${whenBusy})`, threadId);
    const limits = this.anyLimits();
    return this.call(self, record, (api) =>
      api.handler.handle({
        threadId,
        commands: [this.messageCommand(self, record, whenBusy, limits)],
        ...this.keyed(record),
      }),
    );
  }

  private retry(self: SimulatedProcess, threadId: string, state: Thread): Promise<void> {
    const record = this.newRecord(self, 'retry', threadId);
    const run = { agentVersion: 1, limits: this.anyLimits() };
    return this.call(self, record, (api) => {
      const command = {
        type: 'retry_run' as const,
        runId: state.newestRun?.id ?? '',
        run: { ...run, runId: newRun(record) },
      };
      return api.handler.handle({ threadId, commands: [command], ...this.keyed(record) });
    });
  }

  /** Several decisions at once, of all requests or twice of one. */
  private async decideAll(self: SimulatedProcess, threadId: string, state: Thread): Promise<void> {
    const { random } = this.options.scheduler;
    const open = state.runs.flatMap((run) => (run.status === 'waiting_input' ? run.requests : []));
    const chosen = [...open, ...(random.below(2) === 0 ? open : [])].filter(() => random.below(4) > 0);
    await Promise.all(
      chosen.map(({ requestId }) => {
        const record = this.newRecord(self, 'decision', threadId);
        record.requestId = requestId;
        const decision = random.pick(DECISIONS);
        const command: Command = { type: 'decide_permission', requestId, decision, by: record.key };
        return this.call(self, record, (api) =>
          api.handler.handle({ threadId, commands: [command], ...this.keyed(record) }),
        );
      }),
    );
  }

  private simply(self: SimulatedProcess, threadId: string, command: Command): Promise<void> {
    const record = this.newRecord(self, command.type, threadId);
    return this.call(self, record, (api) =>
      api.handler.handle({ threadId, commands: [command], ...this.keyed(record) }),
    );
  }

  private remove(self: SimulatedProcess, threadId: string): Promise<void> {
    const record = this.newRecord(self, 'delete', threadId);
    this.deleting.add(threadId);
    this.threadIds.splice(this.threadIds.indexOf(threadId), this.threadIds.includes(threadId) ? 1 : 0);
    return this.call(self, record, async (api) => {
      await api.handler.deleteThread(threadId);
      return { outcome: 'unchanged' };
    });
  }

  /** One call, tried again under its key while its answer is not known. */
  private async call(self: SimulatedProcess, record: CallRecord, work: Work): Promise<void> {
    const { trace } = this.options;
    this.records.push(record);
    trace(() => `${self.name}: ${record.kind} ${record.threadId} ${record.requestId ?? ''} (${record.key})`);
    for (let tries = 0; tries < TRIES && record.outcome === 'unknown'; tries++) {
      const outcome = await this.send(self, record.key, work);
      if (outcome !== 'unknown') record.outcome = outcome;
    }
    record.done = true;
    trace(() => `${self.name}: ${record.key} is ${record.outcome}`);
  }

  /** As `Idempotency` in apps/api: the key is read where there was no effect, perhaps because of an earlier try's. */
  private async perform(api: Api, key: string, work: Work): Promise<'ok' | 'refused'> {
    const { outcome } = await work(api);
    const isDone = outcome === 'appended' || outcome === 'unchanged';
    return isDone || (await api.store.findKey('token', key)) !== null ? 'ok' : 'refused';
  }

  private send(self: SimulatedProcess, key: string, work: Work): Promise<CallRecord['outcome']> {
    const { scheduler, faults } = this.options;
    return new Promise((resolve) => {
      const giveUp = scheduler.after(ANSWER_WITHIN_MS, self, () => resolve('unknown'));
      const apis = this.options.apis();
      if (apis.length === 0) return;
      const api = scheduler.random.pick(apis);
      scheduler.after(faults.latency(), api.process, () => {
        const answer = (outcome: CallRecord['outcome']): void => {
          scheduler.after(faults.latency(), self, () => {
            giveUp.dropped = true;
            resolve(outcome);
          });
        };
        this.perform(api, key, work).then(answer, () => answer('unknown'));
      });
    });
  }

  private newRecord(self: SimulatedProcess, kind: string, threadId: string): CallRecord {
    const key = `${self.name}-${++this.keys}`;
    return { key, kind, threadId, runIds: [], requestId: null, outcome: 'unknown', done: false };
  }

  private keyed({ key }: CallRecord) {
    return { answer: () => ({ tokenId: 'token', key, fingerprint: key, status: 200, body: 'body' }) };
  }

  private messageCommand(
    self: SimulatedProcess,
    record: CallRecord,
    whenBusy: (typeof WHEN_BUSY)[number],
    limits: RunLimits,
  ): Command {
    const run = { runId: newRun(record), agentVersion: 1, limits };
    return { type: 'add_message', text: record.key, requestId: null, fileIds: [], run, whenBusy, by: self.name };
  }

  private anyRun(state: LoadedThread['state']): string | null {
    const { random } = this.options.scheduler;
    const runs = state.lifecycle === 'none' ? [] : state.runs;
    return runs.length === 0 || random.below(2) === 0 ? null : random.pick(runs).id;
  }

  /** Mostly so long that nothing comes of them. */
  private anyLimits(): RunLimits {
    const { random } = this.options.scheduler;
    const limit = (short: number): number => (random.below(5) === 0 ? short : 10 * 60_000);
    const [queueMs, workMs, waitMs] = [limit(1_500), limit(1_200), limit(1_000)];
    // Not drawn, so that each seed stays what it was before this limit.
    return { queueMs, workMs, waitMs, providerRetryMs: 2 * waitMs, maxLosses: 1 + random.below(4) };
  }
}

/** Another Run id at each try, as the API makes them. */
function newRun(record: CallRecord): string {
  const runId = newId();
  record.runIds.push(runId);
  return runId;
}
