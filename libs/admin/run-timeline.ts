import { costOf, type Prices } from '#agents';
import type { FailureCauseRecord, RunTimeline, TimelineSpan } from '#contract';
import {
  summarizeCause,
  type AnsweringModel,
  type EventOf,
  type EventTypesWith,
  type FailureCause,
  type StoredEvent,
  type ToolCall,
} from '#domain';

type TimelineType = EventTypesWith<'inTimeline'>;

type Needed<Type extends TimelineType, Field extends keyof EventOf<Type>['data'] = never> = {
  type: Type;
  data: Pick<EventOf<Type>['data'], Field>;
} & Pick<StoredEvent, 'version' | 'attempt' | 'occurredAt'>;

type Called = Pick<ToolCall, 'toolCallId' | 'toolName' | 'title'>;
type CalledIn<Type extends TimelineType> = Omit<Needed<Type>, 'data'> & { data: Called };

/** The events of a Run that show how it spent its time, with the required fields. Stored events have this type. */
export type TimelineEvent =
  | Needed<'run.queued', 'agentVersion' | 'delayMs'>
  | Needed<'run.claimed', 'holder'>
  | Needed<'run.started'>
  | Needed<'run.resumed'>
  | Needed<'run.completed'>
  | Needed<'run.cancelled', 'by'>
  | Needed<'run.expired'>
  | Needed<'run.waiting', 'requests'>
  | Needed<'run.requeued', 'reason' | 'delayMs' | 'cause'>
  | Needed<'run.failed', 'error' | 'cause'>
  | Needed<'assistant.text_added'>
  | (Omit<Needed<'assistant.message_added'>, 'data'> & { data: { toolCalls: Called[]; model?: AnsweringModel } })
  | CalledIn<'tool.confirmation_requested'>
  | CalledIn<'tool.started'>
  | Needed<'tool.completed', 'toolCallId' | 'toolName' | 'outcome' | 'durationMs' | 'cause'>
  | Needed<'usage.recorded', 'inputTokens' | 'outputTokens' | 'cachedInputTokens'>;

export interface TimelineOptions {
  /** Display name of the model or harness. */
  modelName: string;
  /** Returns the prices of the Agent's first model, or of a fallback model by its place; null if they are not known. */
  pricesOf: (fallback?: number) => Prices | null;
  /** RFC 3339. A delay that ends later is still open. */
  now: string;
  /** The end of the Run by its summary. Null for a live Run. */
  endedAt: string | null;
}

type TimelineEventOf<Type extends TimelineType> = Extract<TimelineEvent, { type: Type }>;
type RunEvent = Extract<TimelineEvent, { type: `run.${string}` }>;
type Outcome = NonNullable<TimelineSpan['outcome']>;
type Kind = TimelineSpan['kind'];

/**
 * Returns how a Run spent its time and tokens, by a pure fold over its events in their order. Boot lasts from the claim to
 * `run.started`. Releases before docs/adr/0021 stored both in one append, so their boot is not known. The results of a step
 * share their append with what follows (libs/run-engine/run-execution.ts). A model step therefore lasts from the start, or
 * from the last result before it, to its message. A step that stored nothing is shown unless the Run moved on in the same
 * append.
 */
export function runTimeline(events: readonly TimelineEvent[], options: TimelineOptions): FoldedTimeline {
  const fold = new TimelineFold(options);
  for (const event of events) fold.apply(event);
  return fold.result();
}

/** `cancelledBy`: the id of the person, token or operator. */
type FoldedTimeline = Omit<RunTimeline, 'isComplete' | 'cancelledBy' | 'input' | 'output'> & {
  cancelledBy: string | null;
};

const BOOT = 'Boot';

/** A call with the version of a stored event that has its input. */
interface KnownCall {
  title: string;
  version: number;
}

interface Wait {
  since: string;
  delayMs: number;
  name: string;
}

class TimelineFold {
  private readonly spans: TimelineSpan[] = [];
  private agentVersion: number | null = null;
  private losses = 0;
  private cancelledBy: string | null = null;
  private usage: RunTimeline['usage'];
  /** The wait for a worker, with the delay before the Run is enqueued. Null while claimed. */
  private wait: Wait | null = null;
  /** `since` is the time of the claim, later of the start. */
  private claim: { attempt: number | null; holder: string | null; since: string } | null = null;
  /** Spans in progress. At most one model step, boot or wait for a person; any number of tools. */
  private open: TimelineSpan[] = [];
  /** The calls of the last message without a result, by their id. */
  private calls = new Map<string, KnownCall>();
  /** The calls that a person was asked about, by their id. */
  private asked = new Map<string, KnownCall>();
  private lastStep: TimelineSpan | null = null;
  private lastModel: AnsweringModel | undefined;
  /** The step that the claim began with. */
  private firstStep: TimelineSpan | null = null;

  constructor(private readonly options: TimelineOptions) {
    const cost = options.pricesOf() === null ? null : 0;
    this.usage = { inputTokens: 0, outputTokens: 0, cachedInputTokens: null, cost };
  }

  result(): FoldedTimeline {
    const { agentVersion, usage, losses, cancelledBy } = this;
    const { endedAt } = this.options;
    if (this.wait !== null) this.endWait(endedAt, endedAt === null ? null : 'unknown');
    // The last events of an ended Run can be missing. Its open spans end with it.
    if (endedAt !== null) for (const span of this.open) Object.assign(span, { endedAt, outcome: 'unknown' });
    // The sort is stable: spans that began at the same time keep their stored order.
    const spans = this.spans.toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : Number(a.startedAt > b.startedAt)));
    return { agentVersion, spans, usage, losses, cancelledBy };
  }

  apply(event: TimelineEvent): void {
    const { occurredAt: at, version } = event;
    switch (event.type) {
      case 'run.queued':
        this.agentVersion = event.data.agentVersion;
        this.wait = { since: at, delayMs: event.data.delayMs, name: 'Waiting for the previous Run to stop' };
        break;
      case 'run.claimed':
        this.endWait(at, 'ok');
        this.claim = { attempt: event.attempt, holder: event.data.holder, since: at };
        this.begin('boot', BOOT, at);
        break;
      case 'run.started':
        this.start(at);
        break;
      case 'assistant.text_added':
        for (const span of this.open) if (span.kind === 'model') span.firstTextAt ??= at;
        break;
      case 'assistant.message_added':
        this.lastStep = this.end('model', at, 'ok');
        this.lastModel = event.data.model;
        if (this.lastStep !== null) this.lastStep.outputVersion = version;
        if (this.lastStep !== null && this.lastModel !== undefined) this.lastStep.name = this.lastModel.name;
        this.calls = new Map(event.data.toolCalls.map(({ toolCallId, title }) => [toolCallId, { title, version }]));
        break;
      case 'usage.recorded':
        this.addUsage(event);
        break;
      case 'tool.started':
        this.endBoot(at);
        this.begin('tool', event.data.title, at, event.data.toolCallId).inputVersion = version;
        break;
      case 'tool.completed':
        this.endTool(event);
        break;
      case 'tool.confirmation_requested':
        this.endBoot(at);
        this.asked.set(event.data.toolCallId, { title: event.data.title, version });
        break;
      default:
        this.move(event);
    }
  }

  /** Applies a change of status. */
  private move(event: Exclude<RunEvent, { type: 'run.queued' | 'run.claimed' | 'run.started' }>): void {
    const { occurredAt: at } = event;
    switch (event.type) {
      case 'run.waiting': {
        this.endClaim(at, 'ok');
        const titles = event.data.requests.map(({ toolCallId }) => this.asked.get(toolCallId)?.title ?? toolCallId);
        this.begin('waiting', `Waiting for a person: ${titles.join(', ')}`, at);
        break;
      }
      case 'run.resumed':
        this.end('waiting', at, 'ok');
        this.wait = { since: at, delayMs: 0, name: '' };
        break;
      case 'run.requeued': {
        const { reason, delayMs, cause } = event.data;
        if (reason === 'lease_expired') this.losses += 1;
        this.endClaim(at, reason === 'retryable_failure' ? 'error' : 'cut', cause);
        this.wait = { since: at, delayMs, name: 'Waiting to retry after a failure' };
        break;
      }
      case 'run.failed': {
        const isLost = event.data.error.code === 'worker_lost';
        if (isLost) this.losses += 1;
        this.endClaim(at, isLost ? 'cut' : 'error', event.data.cause);
        break;
      }
      case 'run.completed':
        this.endBoot(at);
        this.endClaim(at, 'ok');
        break;
      case 'run.cancelled':
        this.cancelledBy = event.data.by;
        this.endClaim(at, 'cut');
        break;
      case 'run.expired':
        this.endClaim(at, 'cut');
    }
  }

  private begin(kind: Kind, name: string, startedAt: string, toolCallId: string | null = null): TimelineSpan {
    const { attempt = null, holder = null } = this.claim ?? {};
    const events = { inputVersion: null, outputVersion: null };
    const ofStep = { firstTextAt: null, cause: null, toolCallId, ...events, inputTokens: null, outputTokens: null };
    const span: TimelineSpan = { kind, name, attempt, holder, startedAt, endedAt: null, outcome: null, ...ofStep };
    this.spans.push(span);
    this.open.push(span);
    return span;
  }

  private start(at: string): void {
    const isWithClaim = this.claim?.since === at;
    if (this.claim !== null) this.claim.since = at;
    if (this.calls.size === 0) this.firstStep = this.beginStep(at);
    // An old worker stores its start with its claim, so its boot is only known to end before the first tool.
    else if (!isWithClaim) this.end('boot', at, 'ok');
  }

  private beginStep(at: string): TimelineSpan {
    this.end('boot', at, 'ok');
    return this.begin('model', this.options.modelName, at);
  }

  /** Ends the open span of the kind and call, and returns it; null if there is none. */
  private end(kind: Kind, at: string, outcome: Outcome, toolCallId: string | null = null): TimelineSpan | null {
    const span = this.open.find((each) => each.kind === kind && each.toolCallId === toolCallId);
    if (span === undefined) return null;
    this.open = this.open.filter((each) => each !== span);
    Object.assign(span, { endedAt: at, outcome });
    // The claim and the start are in one append.
    if (kind === 'boot' && span.startedAt === at) this.drop(span);
    return span;
  }

  private endTool({ data, occurredAt: at, version }: TimelineEventOf<'tool.completed'>): void {
    const { toolCallId, toolName, outcome, durationMs, cause } = data;
    let span = this.end('tool', at, outcome, toolCallId);
    if (span === null) {
      // The call did not run, or an earlier attempt stored its start.
      const ranSince = new Date(Date.parse(at) - (durationMs ?? 0)).toISOString();
      const since = this.claim && ranSince < this.claim.since ? this.claim.since : ranSince;
      this.endBoot(since);
      const known = this.calls.get(toolCallId) ?? this.asked.get(toolCallId);
      this.begin('tool', known?.title ?? toolName, since, toolCallId).inputVersion = known?.version ?? null;
      span = this.end('tool', at, outcome, toolCallId);
    }
    if (span !== null) span.outputVersion = version;
    if (span !== null && cause !== undefined) span.cause = withSummary(cause);
    this.calls.delete(toolCallId);
    const isLast = this.calls.size === 0 && this.open.every(({ kind }) => kind !== 'tool');
    if (isLast) this.beginStep(at);
  }

  /**
   * Ends the boot. Turns an open model step into a boot, because it produced no message. This happens when a Run continues the
   * calls of the previous Run.
   */
  private endBoot(at: string): void {
    for (const span of this.open) if (span.kind === 'model') Object.assign(span, { kind: 'boot', name: BOOT });
    this.end('boot', at, 'ok');
  }

  /** Ends all open spans with the claim, or the wait in which the Run ended. */
  private endClaim(at: string, outcome: Outcome, cause?: FailureCause): void {
    if (this.wait !== null) this.endWait(at, 'cut');
    if (outcome === 'error' && cause?.source === 'provider' && cause.waitedMs !== undefined)
      this.showCall(at, cause.waitedMs);
    const ending = this.open.filter((span) => {
      // A first step that fails immediately shares its append with the start.
      const hasFailed = span === this.firstStep && outcome === 'error';
      const beganNothing = span.kind === 'model' && span.startedAt === at && !hasFailed;
      if (beganNothing) this.drop(span);
      return !beganNothing;
    });
    // Only one of several has failed, and it is unknown which.
    const outcomeOfEach = outcome === 'error' && ending.length > 1 ? 'cut' : outcome;
    for (const span of ending) Object.assign(span, { endedAt: at, outcome: outcomeOfEach });
    // Without an open span, the last one of the attempt has the cause.
    const caused = ending.length === 0 ? this.spans.slice(-1) : outcomeOfEach === outcome ? ending : [];
    if (cause !== undefined) for (const span of caused) span.cause = withSummary(cause);
    this.open = [];
    this.claim = null;
  }

  /**
   * Shows the failed call of the provider as a model step that lasted `waitedMs`. An attempt whose first call fails soon stores its
   * start together with the failure, or no start. Otherwise the boot would cover the whole attempt. A Run that only waits for its
   * turn has a cause without `waitedMs`.
   */
  private showCall(at: string, waitedMs: number): void {
    const boot = this.spans.findLast(({ kind }) => kind === 'boot');
    const isOpen = boot !== undefined && this.open.includes(boot);
    if (boot === undefined || (!isOpen && (boot.endedAt !== at || this.firstStep?.startedAt !== at))) return;
    const called = new Date(Date.parse(at) - waitedMs).toISOString();
    const since = called > boot.startedAt ? called : boot.startedAt;
    if (isOpen) this.firstStep = this.begin('model', this.options.modelName, since);
    else this.firstStep!.startedAt = since;
    this.open = this.open.filter((each) => each !== boot);
    Object.assign(boot, { endedAt: since, outcome: 'ok' });
    if (boot.startedAt === since) this.drop(boot);
  }

  private drop(span: TimelineSpan): void {
    this.spans.splice(this.spans.indexOf(span), 1);
  }

  /** Ends the wait; `at` is null if it continues. The delay of an interrupt ends early if the previous worker has stopped. */
  private endWait(at: string | null, outcome: Outcome | null): void {
    if (this.wait === null) return;
    const { since, delayMs, name } = this.wait;
    this.wait = null;
    const readyAt = new Date(Date.parse(since) + delayMs).toISOString();
    const isReady = readyAt < (at ?? this.options.now);
    const spans: [Kind, string, string, string | null][] = [];
    if (delayMs > 0) spans.push(['delay', name, since, isReady ? readyAt : at]);
    if (delayMs === 0 || isReady) spans.push(['queue', 'Waiting for a worker', readyAt, at]);
    this.claim = null;
    for (const [kind, label, startedAt, endedAt] of spans) {
      this.begin(kind, label, startedAt);
      if (endedAt !== null) this.end(kind, endedAt, endedAt === at ? (outcome ?? 'ok') : 'ok');
    }
  }

  private addUsage({ data }: TimelineEventOf<'usage.recorded'>): void {
    const { inputTokens, outputTokens, cachedInputTokens } = data;
    if (this.lastStep !== null) Object.assign(this.lastStep, { inputTokens, outputTokens });
    const { usage } = this;
    usage.inputTokens += inputTokens;
    usage.outputTokens += outputTokens;
    if (cachedInputTokens !== undefined) usage.cachedInputTokens = (usage.cachedInputTokens ?? 0) + cachedInputTokens;
    const prices = this.options.pricesOf(this.lastModel?.fallback);
    // A sum without some of the steps would look like the whole cost.
    usage.cost = usage.cost === null || prices === null ? null : usage.cost + costOf(data, prices);
  }
}

const withSummary = (cause: FailureCause): FailureCauseRecord => ({ summary: summarizeCause(cause), ...cause });
