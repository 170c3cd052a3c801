import fc from 'fast-check';
import { createCitationFilter, removeCitations, toFinalOutput, type CitationFilter } from './citations.ts';
import { attachFile, openStepAfter, type Command, type RecordedFact } from './commands.ts';
import { command } from './decider.testing.ts';
import { decide } from './decide.ts';
import { EVENT_TYPES } from './event-types.ts';
import type { StoredEvent } from './events.ts';
import { incrementUlid } from './ids.ts';
import { showEvent } from './log-entry.ts';
import { isRejection } from './rejection.ts';
import { runError } from './run-errors.ts';
import { initialState, type ClaimedRun, type LiveRun, type ThreadState } from './state.ts';

/** One random step of a Thread: its kind and its variant. */
export type Chance = [kind: number, pick: number];

export const anyChances: fc.Arbitrary<Chance[]> = fc.array(fc.tuple(fc.nat(99), fc.nat(999)), {
  minLength: 30,
  maxLength: 90,
  size: 'max',
});

/** The texts of a Run's stored messages. */
export interface SaidMessage {
  runId: string | null;
  text: string;
}

/** A message that a worker is about to store: its text and thinking, the deltas that are not stored yet, and the engine's filter. */
interface Saying {
  text: string;
  thinking: string;
  rest: string[];
  citations: CitationFilter;
}

const WORDS = ['One ', 'two\n', '😀', '\uE200cite\uE202', 'turn0', '\uE201', '\uE200', ' and so on. ', 'x'];
const THOUGHT = 'Hm. ';
const CALL = { toolCallId: 'C', toolName: 'look', title: 'Look', toolInput: {} };
const DONE = { toolCallId: 'C', toolName: 'look', outcome: 'ok', summary: 's', result: 'r', durationMs: 1 } as const;

/**
 * For specs: generates the log of a Thread. Its workers are lost, fail, hand over, are interrupted, time out, ask people and
 * use tools, during a step or between two. Some workers and leaders are of an earlier release, as in a rolling upgrade.
 */
export class RandomLog {
  readonly events: StoredEvent[] = [];
  private state: ThreadState = initialState;
  private saying: Saying | null = null;
  private lastId = '01J00000000000000000000000';
  private names = 0;

  constructor(chances: readonly Chance[]) {
    this.happen(command.create());
    for (const [kind, pick] of chances) this.step(kind, pick);
  }

  private step(kind: number, pick: number): void {
    const runs = this.state.lifecycle === 'none' ? [] : this.state.runs;
    const [run] = runs;
    if (kind < 4) return this.happen(this.file(pick));
    if (kind < 8)
      return this.happen(command.message(this.newName(), (['enqueue', 'interrupt', 'reject'] as const)[pick % 3]));
    if (run === undefined) return this.begin(pick);
    if (kind < 10) return this.happen(command.interrupt(runs[pick % runs.length]?.id ?? null));
    switch (run.status) {
      case 'queued':
        if (kind < 12) return this.happen(command.expire(run.id, 'queue', run));
        this.saying = null;
        return this.happen(...claim(run));
      case 'booting':
        if (kind < 20) return this.lose(run, pick);
        return kind < 50 ? this.happen(command.start(run.id, run.attempt)) : this.work(run, kind, pick);
      case 'running':
        return kind < 25 ? this.lose(run, pick) : this.work(run, kind, pick);
      case 'waiting_input':
        if (kind < 12) return this.happen(command.expire(run.id, 'wait', run));
        return this.happen(
          command.decide(
            run.requests.find(({ decision }) => decision === null)?.requestId ?? '',
            pick % 3 ? 'allow_once' : 'reject_once',
          ),
        );
    }
  }

  private begin(pick: number): void {
    const newest = this.state.lifecycle === 'none' ? null : this.state.newestRun;
    if (pick % 3 === 0 && newest) this.happen(command.retry(newest.id, this.newName()));
    else if (pick % 10 === 1) this.happen({ type: 'archive' }, { type: 'unarchive' });
    else this.happen(command.message(this.newName()));
  }

  private file(pick: number): Command {
    const file = { fileId: `F${pick}`, name: 'a.txt', kind: 'attachment' } as const;
    return pick % 2 ? attachFile(file.fileId, file.name) : { type: 'delete_file', ...file };
  }

  /** Takes the Run from its worker. A leader of an earlier release does not name the step that it voids. */
  private lose(run: LiveRun, pick: number): void {
    const { id, attempt, dispatch } = run;
    const openStep = openStepAfter(this.claimed(run));
    const ways = [
      command.reclaim(id, attempt),
      { ...command.handOver(id, attempt), openStep },
      { ...command.fail(id, runError('provider_unavailable'), attempt), openStep },
      { ...command.reclaim(id, attempt), openStep },
      { ...command.handOver(id, attempt), openStep },
      { ...command.fail(id, runError('provider_auth'), attempt), openStep },
      command.expire(id, 'work', { attempt, dispatch }),
    ] as Command[];
    this.happen(ways[pick % ways.length]!);
  }

  /** Returns the events of the Run's current claim. */
  private claimed({ id, attempt }: LiveRun): StoredEvent[] {
    return this.events.filter((event) => event.runId === id && event.attempt === attempt);
  }

  /** Lets the worker store a delta, end its step, or act between two steps. */
  private work(run: ClaimedRun, kind: number, pick: number): void {
    if (this.saying === null && kind < 40) return this.happen(...startOf(run), ...this.between(run, pick));
    this.saying ??= newSaying(pick);
    const { saying } = this;
    if (kind < 85 && saying.rest.length > 0) {
      const text = saying.citations.push(saying.rest.shift() ?? '');
      const thought = this.thought(run, pick);
      if (thought.length > 0) saying.thinking += THOUGHT;
      return this.record(run, [...thought, ...this.delta(run, text)]);
    }
    const left = saying.rest.map((piece) => saying.citations.push(piece)).join('') + saying.citations.end();
    this.saying = null;
    const { step } = this.stepOf(run);
    const numbered = step === undefined ? {} : { step, ...(saying.thinking && { thinking: saying.thinking }) };
    const message = { text: saying.text, toolCalls: pick % 3 ? [] : [CALL], ...numbered };
    const facts: RecordedFact[] = [
      ...this.delta(run, left),
      { type: 'assistant.message_added', data: message },
      { type: 'usage.recorded', data: { inputTokens: 1, outputTokens: 1 } },
    ];
    const then = pick % 5 === 0 ? [command.handOver(run.id, run.attempt)] : [];
    const complete = { type: 'complete_run', runId: run.id, attempt: run.attempt } as const;
    const ends = message.toolCalls.length === 0 && pick % 4 !== 0;
    this.record(run, facts, ends ? [{ ...complete, finalOutput: toFinalOutput(message.text) }] : then);
  }

  private between({ id, attempt }: ClaimedRun, pick: number): Command[] {
    if (pick % 4 === 0) return this.ask({ id, attempt });
    const facts: RecordedFact[] = [
      { type: 'tool.started', data: CALL },
      { type: 'file.changed', data: { fileId: 'F', name: 'b.txt', kind: 'artifact', action: 'created' } },
      { type: 'tool.completed', data: DONE },
    ];
    return [{ type: 'record', runId: id, attempt, facts: facts.slice(0, 1 + (pick % 3)) }];
  }

  private ask({ id: runId, attempt }: Pick<ClaimedRun, 'id' | 'attempt'>): Command[] {
    const requestId = this.newName();
    const data = { ...CALL, toolCallId: `call of ${requestId}`, requestId };
    const facts: RecordedFact[] = [{ type: 'tool.confirmation_requested', data }];
    return [{ type: 'record', runId, attempt, facts }, command.wait(runId, [requestId], attempt)];
  }

  /** Returns the step number that the engine writes. A booting Run has one too. */
  private stepOf(run: ClaimedRun): { step?: number } {
    if (!numbersSteps(run)) return {};
    return { step: this.claimed(run).filter(({ type }) => type === 'assistant.message_added').length + 1 };
  }

  private delta(run: ClaimedRun, text: string): RecordedFact[] {
    return text === '' ? [] : [{ type: 'assistant.text_added', data: { text, ...this.stepOf(run) } }];
  }

  private thought(run: ClaimedRun, pick: number): RecordedFact[] {
    return pick % 4 ? [] : [{ type: 'assistant.thinking_added', data: { text: THOUGHT, ...this.stepOf(run) } }];
  }

  private record(run: ClaimedRun, facts: RecordedFact[], then: Command[] = []): void {
    const { id: runId, attempt } = run;
    this.happen(...startOf(run), { type: 'record', runId, attempt, facts }, ...then);
  }

  /** Appends in one commit. Does nothing if the domain rejects a command. */
  private happen(...commands: Command[]): void {
    const decision = decide(commands, this.state, new Date(this.events.length).toISOString());
    if (isRejection(decision)) return;
    this.state = decision.state;
    for (const event of decision.events) {
      this.lastId = incrementUlid(this.lastId);
      const place = {
        threadId: 'T',
        version: this.events.length + 1,
        id: this.lastId,
        public: showEvent(event) !== null,
      };
      this.events.push({ ...event, ...place, schemaVersion: EVENT_TYPES[event.type].schemaVersion });
    }
    const worker = this.state.lifecycle === 'none' ? undefined : this.state.runs[0];
    if (worker?.status !== 'running') this.saying = null;
  }

  private newName(): string {
    return `N${++this.names}`;
  }
}

function newSaying(pick: number): Saying {
  const rest = Array.from({ length: pick % 7 }, (_, i) => WORDS[(pick * (i + 1) + i) % WORDS.length] ?? '');
  return { text: rest.join(''), thinking: '', rest, citations: createCitationFilter() };
}

/** Claims like a worker of this release, or like an earlier one, which stored claim and start in one append. */
function claim({ id: runId, attempt, dispatch }: LiveRun): Command[] {
  const claimed = { type: 'claim_run', runId, dispatch, holder: 'worker' } as const;
  return numbersSteps({ id: runId, attempt: attempt + 1 }) ? [claimed] : [claimed, command.start(runId, attempt + 1)];
}

/** Returns the start that a worker appends with its first facts; nothing once it is stored. */
function startOf({ id, attempt, status }: ClaimedRun): Command[] {
  return status === 'booting' ? [command.start(id, attempt)] : [];
}

/** Returns whether a worker of this release makes the claim, which holds for two of three. */
export function numbersSteps({ id, attempt }: { id: string; attempt: number }): boolean {
  return (Number(id.slice(1)) + attempt) % 3 !== 0;
}

/**
 * Returns the expected messages of a stream from the events that the documented reader does not see: each stored message without
 * citations, and the text of a Run that ended in the middle of a message. The text of a voided step does not count.
 */
export function storedMessages(events: readonly StoredEvent[]): SaidMessage[] {
  const messages: SaidMessage[] = [];
  let open: SaidMessage | null = null;
  for (const event of events) {
    const { runId } = event;
    switch (event.type) {
      case 'assistant.text_added':
        open ??= { runId, text: '' };
        open.text += event.data.text;
        break;
      case 'assistant.message_added':
        messages.push({ runId, text: removeCitations(event.data.text).text });
        open = null;
        break;
      case 'run.requeued':
        open = null;
        break;
      case 'run.failed':
      case 'run.cancelled':
      case 'run.expired':
        // Events of a queued Run do not end the message of the active one.
        if (open !== null && open.runId === runId) {
          messages.push(open);
          open = null;
        }
        break;
      default:
        break;
    }
  }
  // The unfinished message at the end of the log.
  return [...messages, ...(open ? [open] : [])].filter(({ text }) => text !== '');
}
