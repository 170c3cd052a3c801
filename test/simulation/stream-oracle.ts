import type { StoredEvent } from '#domain';

/** What was seen of a Run. */
export interface SeenRun {
  id: string;
  status: string;
  attempt: number;
  dispatch: number;
  losses: number;
  maxLosses: number;
  /** Retryable failures in a row, the outages of the provider apart from others. */
  failures: number;
  ofProvider: boolean;
  failingSince: number;
  providerRetryMs: number;
  open: Set<string>;
  /** The text of the message that its worker is writing, as people see it. */
  visible: string;
}

/** The table of docs/spec/decisions.md#run-transitions once more: an oracle that asks the domain knows nothing. */
const AFTER: Record<string, string> = {
  'queued claimed': 'booting',
  'booting started': 'running',
  'booting requeued': 'queued',
  'running waiting': 'waiting_input',
  'running requeued': 'queued',
  'running completed': 'completed',
  'waiting_input resumed': 'queued',
};
const ENDINGS = ['failed', 'cancelled', 'expired'];
const LIVE = ['queued', 'booting', 'running', 'waiting_input'];
const CLAIMED = ['booting', 'running', 'waiting_input'];

/** Follows one stream, event by event, and throws where it breaks what must always hold at every prefix. */
export class StreamOracle {
  readonly runs = new Map<string, SeenRun>();
  /** Who decided each request. */
  readonly decidedBy = new Map<string, string>();
  readonly allowed = new Set<string>();
  /** How many claims the Thread has had. */
  claims = 0;
  /** How many claims it had had when each tool call started first, with the one that started it. */
  readonly started = new Map<string, number>();
  /** The results of tool calls, in their order: the call and its outcome. */
  readonly results: string[] = [];
  /** The texts that people saw of messages before a stop cut them, in their order. */
  private readonly seen: string[] = [];
  /** How many results and texts there were at each claim. */
  private readonly knownAt = new Map<string, { results: number; seen: number }>();
  private last: StoredEvent | null = null;

  live(): SeenRun[] {
    return [...this.runs.values()].filter(({ status }) => LIVE.includes(status));
  }

  /** What was stored before the claim, by whatever Run. */
  knownBefore(runId: string, attempt: number): { results: string[]; seen: string[] } {
    const known = this.knownAt.get(`${runId} ${attempt}`);
    return { results: this.results.slice(0, known?.results), seen: this.seen.slice(0, known?.seen) };
  }

  see(event: StoredEvent): void {
    const { last } = this;
    const { version, id, occurredAt, runId, type } = event;
    must(version === (last?.version ?? 0) + 1, `I2: version ${version} follows ${last?.version ?? 0}`);
    must(last === null || id > last.id, `I2: the id of version ${version} is not above the one before`);
    must(last === null || occurredAt >= last.occurredAt, `I2: version ${version} occurred before its predecessor`);
    must((type === 'thread.created') === (last === null), `I2: ${type} is version ${version}`);
    this.last = event;
    if (runId === null || type.startsWith('thread.') || type === 'message.added') return;
    if (type === 'run.queued') return this.seeQueued(event, runId);
    const run = this.runs.get(runId);
    if (run === undefined) throw new Broken(`I3: ${type} of a Run that was never queued`);
    must(LIVE.includes(run.status), `I3: ${type} of Run ${runId}, which is ${run.status}`);
    this.seeAttempt(event, run);
    if (type.startsWith('run.')) this.seeMove(event, run);
    else this.seeFact(event, run);
    const claimed = this.live().filter(({ status }) => CLAIMED.includes(status));
    must(claimed.length <= 1, `I4: ${claimed.length} Runs are claimed`);
  }

  private seeQueued({ data }: StoredEvent, id: string): void {
    must(!this.runs.has(id), `I3: Run ${id} is queued again`);
    const { limits } = data as { limits: { maxLosses: number; providerRetryMs: number } };
    const { maxLosses, providerRetryMs } = limits;
    this.runs.set(id, {
      id,
      status: 'queued',
      attempt: 0,
      dispatch: 1,
      losses: 0,
      maxLosses,
      failures: 0,
      ofProvider: false,
      failingSince: 0,
      providerRetryMs,
      open: new Set(),
      visible: '',
    });
  }

  private seeAttempt({ type, attempt, data }: StoredEvent, run: SeenRun): void {
    if (type === 'run.claimed') {
      must(attempt === run.attempt + 1, `I6: claim ${attempt} follows ${run.attempt}`);
      must((data as { dispatch: number }).dispatch === run.dispatch, `a claim is under an old dispatch`);
      must(this.live()[0] === run, `I4: a Run is claimed that waits behind another`);
      run.attempt += 1;
      this.claims += 1;
      this.knownAt.set(`${run.id} ${attempt}`, { results: this.results.length, seen: this.seen.length });
      run.visible = '';
      return;
    }
    if (attempt === null) return;
    must(attempt === run.attempt, `I6: ${type} has attempt ${attempt} under claim ${run.attempt}`);
    must(run.status === 'booting' || run.status === 'running', `I6: ${type} of a worker, but the Run is ${run.status}`);
  }

  private seeMove({ type, data, occurredAt }: StoredEvent, run: SeenRun): void {
    const move = type.slice('run.'.length);
    const after = ENDINGS.find((ending) => ending === move) ?? AFTER[`${run.status} ${move}`];
    if (after === undefined) throw new Broken(`a Run that is ${run.status} cannot be ${move}`);
    run.status = after;
    if (move === 'cancelled' && run.visible !== '') this.seen.push(run.visible);
    if (move === 'requeued') run.visible = '';
    const { dispatch, reason, losses, streak, requests } = data as {
      dispatch: number;
      reason: string;
      losses: number;
      streak?: { of: string; failures: number };
      requests: { requestId: string }[];
    };
    if (move === 'waiting') run.open = new Set(requests.map(({ requestId }) => requestId));
    if (move === 'resumed') must(run.open.size === 0, 'a Run is resumed before all is decided');
    if (move !== 'resumed' && move !== 'requeued') return;
    must(dispatch === run.dispatch + 1, `${move} opens dispatch ${dispatch} after ${run.dispatch}`);
    run.dispatch = dispatch;
    if (move !== 'requeued') return;
    if (reason === 'lease_expired') run.losses++;
    must(losses === run.losses, `${losses} losses are stored, there were ${run.losses} in a row`);
    must(run.losses < run.maxLosses, 'a Run goes on after its last loss');
    if (reason === 'retryable_failure') {
      const ofProvider = streak?.of === 'provider';
      run.failures = ofProvider === run.ofProvider ? run.failures + 1 : 1;
      run.ofProvider = ofProvider;
      if (run.failures === 1) run.failingSince = Date.parse(occurredAt);
      const isOver = ofProvider
        ? Date.parse(occurredAt) - run.failingSince >= run.providerRetryMs
        : run.failures >= run.maxLosses;
      must(!isOver, 'a Run goes on after its last failure');
    }
    const stored = streak?.failures ?? 0;
    must(stored === run.failures, `${stored} failures are stored, there were ${run.failures} in a row`);
  }

  private seeFact({ type, data }: StoredEvent, run: SeenRun): void {
    const isDecision = type === 'tool.confirmation_decided';
    must(run.status === (isDecision ? 'waiting_input' : 'running'), `${type} while the Run is ${run.status}`);
    if (type === 'assistant.message_added' || type === 'tool.completed') run.losses = run.failures = 0;
    const { toolCallId, requestId, decision, by, outcome, text } = data as Record<string, string>;
    if (type === 'assistant.text_added') run.visible += text;
    if (type === 'assistant.message_added') run.visible = '';
    if (type === 'tool.completed') {
      must(!this.results.some((result) => result.startsWith(toolCallId!)), `I10: ${toolCallId} has two results`);
      this.results.push(`${toolCallId} ${outcome}`);
    }
    if (type === 'tool.started' && !this.started.has(toolCallId!)) this.started.set(toolCallId!, this.claims);
    if (!isDecision) return;
    must(run.open.delete(requestId!), `request ${requestId} is decided, but not open`);
    this.decidedBy.set(requestId!, by!);
    if (decision === 'allow_once') this.allowed.add(toolCallId!);
  }
}

/** Something that must always hold does not. */
class Broken extends Error {}

export function must(holds: boolean, rule: string): void {
  if (!holds) throw new Broken(rule);
}
