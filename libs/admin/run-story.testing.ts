import {
  decide,
  initialState,
  isRejection,
  runError,
  type Command,
  type RecordedFact,
  type ThreadState,
} from '#domain';
import { runTimeline, type TimelineEvent, type TimelineOptions } from './run-timeline.ts';

const START = Date.parse('2026-01-01T00:00:00.000Z');
export const at = (ms: number): string => new Date(START + ms).toISOString();
export const RUN = '01RUN';
const LIMITS = { queueMs: 1_000, workMs: 1_000, waitMs: 1_000, maxLosses: 3 };

/** A Thread whose events the decider writes. Each call is one append. Times in milliseconds. */
export class Story {
  readonly events: TimelineEvent[] = [];
  private version = 0;
  private state: ThreadState = initialState;
  private fence = { runId: RUN, attempt: 0 };

  constructor() {
    const owner = { personId: null, serviceTokenId: null };
    const thread = { agentId: 'A', organizationId: 'O', kind: 'cattle', userId: 'u', owner } as const;
    this.at(0, { type: 'create_thread', ...thread }, this.message(RUN));
  }

  message(runId: string, whenBusy: 'reject' | 'interrupt' = 'reject'): Command {
    const run = { runId, agentVersion: 7, limits: LIMITS };
    return { type: 'add_message', text: 'hi', requestId: null, fileIds: [], run, whenBusy, by: null };
  }

  at(ms: number, ...commands: Command[]): this {
    const decision = decide(commands, this.state, at(ms));
    if (isRejection(decision)) throw new Error(decision.message);
    this.state = decision.state;
    const dated = decision.events.map((event) => ({ ...event, version: (this.version += 1) }));
    this.events.push(...(dated.filter(({ runId }) => runId === this.fence.runId) as TimelineEvent[]));
    return this;
  }

  /** Continues with the events of the other Run only. */
  interruptedBy(runId: string, ms: number): this {
    this.events.length = 0;
    this.fence = { runId, attempt: 0 };
    return this.at(ms, this.message(runId, 'interrupt'));
  }

  /** Claims and starts in one append, like the previous release (docs/adr/0021). */
  claim(ms: number): this {
    return this.at(ms, this.claimed(), { ...this.fence, type: 'start_run' });
  }

  boot(ms: number): this {
    return this.at(ms, this.claimed());
  }

  /** Records the facts in the append of the start. */
  start(ms: number, ...facts: RecordedFact[]): this {
    return this.at(ms, { ...this.fence, type: 'start_run' }, { ...this.fence, type: 'record', facts });
  }

  private claimed(): Command {
    const { runId, attempt } = this.fence;
    this.fence = { runId, attempt: attempt + 1 };
    const dispatch = attempt + 1;
    return { type: 'claim_run', runId, dispatch, holder: `worker-${dispatch}` };
  }

  record(ms: number, ...facts: RecordedFact[]): this {
    return this.at(ms, { ...this.fence, type: 'record', facts });
  }

  /** Records the facts and applies the last command in one append. */
  ends(ms: number, facts: RecordedFact[], command: Last, retryable = false): this {
    return this.at(ms, { ...this.fence, type: 'record', facts }, this.last(command, retryable));
  }

  /** Starts and ends a step in one append. */
  startsAndEnds(ms: number, command: Last): this {
    return this.at(ms, { ...this.fence, type: 'start_run' }, this.last(command));
  }

  /** Ends a boot without a start. */
  bootEnds(ms: number, command: 'hand_over' | 'fail', retryable = false): this {
    return this.at(ms, this.last(command, retryable));
  }

  private last(command: Last, retryable = false): Command {
    const last: Record<typeof command, Command> = {
      complete: { ...this.fence, type: 'complete_run', finalOutput: null },
      hand_over: { ...this.fence, type: 'hand_over_run' },
      fail: {
        ...this.fence,
        type: 'fail_run',
        error: runError(retryable ? 'provider_unavailable' : 'provider_rejected'),
        jitter: 1,
      },
      ask: { ...this.fence, type: 'wait_for_decisions', requests: [{ requestId: 'r', toolCallId: 'a' }] },
    };
    return last[command];
  }

  lose(ms: number): this {
    return this.at(ms, { ...this.fence, type: 'reclaim_run', jitter: 1 });
  }

  /** Returns kind, attempt, start, end and outcome of each span. */
  spans(options: Partial<TimelineOptions> = {}): unknown[][] {
    const { spans } = this.timeline(options);
    return spans.map(({ kind, attempt, startedAt, endedAt, outcome }) => [
      kind,
      attempt,
      Date.parse(startedAt) - START,
      endedAt && Date.parse(endedAt) - START,
      outcome,
    ]);
  }

  timeline(options: Partial<TimelineOptions> = {}) {
    return runTimeline(this.events, {
      modelName: 'm',
      pricesOf: () => null,
      now: at(1_000_000),
      endedAt: null,
      ...options,
    });
  }
}

type Last = 'complete' | 'hand_over' | 'fail' | 'ask';

const call = (toolCallId: string) => ({
  toolCallId,
  toolName: `tool_${toolCallId}`,
  title: `Tool ${toolCallId}`,
  toolInput: {},
});
export const text = (words = 'x'): RecordedFact => ({ type: 'assistant.text_added', data: { text: words } });
export const said = (...ids: string[]): RecordedFact => ({
  type: 'assistant.message_added',
  data: { text: 'ho', toolCalls: ids.map(call) },
});
export const used = (inputTokens: number, outputTokens: number, cachedInputTokens?: number): RecordedFact => ({
  type: 'usage.recorded',
  data: { inputTokens, outputTokens, ...(cachedInputTokens === undefined ? {} : { cachedInputTokens }) },
});
export const started = (id: string): RecordedFact => ({ type: 'tool.started', data: call(id) });
export const asked = (id: string): RecordedFact => ({
  type: 'tool.confirmation_requested',
  data: { ...call(id), requestId: 'r' },
});
export const done = (
  id: string,
  durationMs: number | null,
  outcome: 'ok' | 'unknown' | 'refused' = 'ok',
): RecordedFact => ({
  type: 'tool.completed',
  data: { toolCallId: id, toolName: `tool_${id}`, outcome, summary: '', result: '', durationMs },
});
