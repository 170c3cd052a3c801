import type { DatedEvent } from './evolve.ts';
import type { ThreadStatus } from './events.ts';
import type { RunStatus } from './run-transitions.ts';

/** A Run as the oracle has seen it. */
interface Seen {
  id: string;
  status: RunStatus;
  attempt: number;
  dispatch: number;
  lastMove: string;
  /** Whether another Run was live when it was queued. */
  wasBehind: boolean;
}

/** The table of docs/spec/decisions.md#run-transitions as pairs. A second copy, because an oracle must not ask the code. */
const AFTER: Record<string, RunStatus> = {
  'queued claimed': 'booting',
  'booting started': 'running',
  'booting requeued': 'queued',
  'running waiting': 'waiting_input',
  'running requeued': 'queued',
  'running completed': 'completed',
  'waiting_input resumed': 'queued',
};
const ENDINGS = ['failed', 'cancelled', 'expired'] as const;
const LIVE: readonly string[] = ['queued', 'booting', 'running', 'waiting_input'];
const CLAIMED: readonly string[] = ['booting', 'running', 'waiting_input'];

/** Follows a stream event by event, and throws if it breaks an invariant. Does not use `evolve`. */
export class StreamOracle {
  readonly runs = new Map<string, Seen>();
  status: ThreadStatus | null = null;
  private terminated = false;
  private archived = false;

  live(): Seen[] {
    return [...this.runs.values()].filter(({ status }) => LIVE.includes(status));
  }

  newest(): Seen | undefined {
    return [...this.runs.values()].at(-1);
  }

  see(event: DatedEvent): void {
    if (event.type === 'thread.created') {
      must(this.status === null, 'created once');
      this.status = 'IDLE';
    }
    must(this.status !== null, 'nothing before the creation');
    if (event.type === 'thread.status_entered') {
      must(event.data.status !== this.status, 'a status is entered once');
      this.status = event.data.status;
      return;
    }
    if (event.type === 'thread.terminated') this.terminated = true;
    if (event.type === 'thread.archived' || event.type === 'thread.unarchived') {
      must(this.archived === (event.type === 'thread.unarchived') && this.live().length === 0, 'archived while idle');
      this.archived = !this.archived;
    }
    if (event.runId === null) return;
    must(!this.terminated && !this.archived, 'no Run works after the end of the Thread');
    const before = this.runs.get(event.runId);
    if (event.type === 'run.queued') {
      must(before === undefined, 'a Run is queued once');
      const begun = { id: event.runId, status: 'queued' as const, attempt: 0, dispatch: 1, lastMove: 'queued' };
      this.runs.set(event.runId, { ...begun, wasBehind: this.live().length > 0 });
      return;
    }
    if (event.type === 'message.added') return must(before === undefined, 'the message comes before its Run');
    if (before === undefined) throw new Error(`an event of no Run: ${event.type}`);
    // I3: nothing follows the one terminal event.
    must(LIVE.includes(before.status), 'no event of a Run after its end');
    this.seeOf(before, event);
    // I4, at every prefix.
    const claimed = this.live().filter(({ status }) => CLAIMED.includes(status));
    must(
      claimed.length <= 1 && (claimed.length === 0 || claimed[0] === this.live()[0]),
      'only the current Run is claimed',
    );
  }

  /** Returns the status that the Thread status table gives for the seen Runs. */
  expectedStatus(): ThreadStatus {
    if (this.terminated) return 'TERMINATED';
    const [current] = this.live();
    if (current === undefined) return 'IDLE';
    const behind = current.wasBehind && current.lastMove === 'queued';
    return current.status === 'queued' && (behind || current.lastMove === 'requeued') ? 'RESCHEDULING' : 'RUNNING';
  }

  private seeOf(run: Seen, event: DatedEvent): void {
    if (event.type === 'run.claimed') {
      must(event.attempt === run.attempt + 1, 'each claim raises the attempt by one');
      must(event.data.dispatch === run.dispatch, 'a claim is under the dispatch of the day');
      run.attempt += 1;
    } else if (event.attempt !== null) {
      // I6.
      must(event.attempt === run.attempt, 'a worker writes under the present attempt');
      must(run.status === 'booting' || run.status === 'running', 'a worker writes while it holds the claim');
    }
    if (!event.type.startsWith('run.')) {
      const decision = event.type === 'tool.confirmation_decided';
      must(run.status === (decision ? 'waiting_input' : 'running'), `${event.type} has its time`);
      return;
    }
    const move = event.type.slice('run.'.length);
    const after = ENDINGS.find((ending) => ending === move) ?? AFTER[`${run.status} ${move}`];
    if (after === undefined) throw new Error(`${run.status} cannot be ${move}`);
    run.status = after;
    run.lastMove = move;
    if (event.type !== 'run.resumed' && event.type !== 'run.requeued') return;
    must(event.data.dispatch === run.dispatch + 1, 'each return to the queue opens the next dispatch');
    run.dispatch = event.data.dispatch;
  }
}

function must(holds: boolean, rule: string): void {
  if (!holds) throw new Error(`broken: ${rule}`);
}
