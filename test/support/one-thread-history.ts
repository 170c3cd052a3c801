/** What was stored of a Thread, and by which transaction. `deleted` stands for its deletion, which leaves no event. */
export interface HistoryEvent {
  version: number;
  transaction: string;
  type: string;
  data: { text?: string; requestId?: string; decision?: string; status?: string; requests?: { requestId: string }[] };
  runId: string | null;
  /** Not before it was asked for and not after COMMIT; milliseconds, null where nobody wrote it down. */
  occurredAt: number | null;
}

export type Asked =
  | { kind: 'message'; text: string }
  | { kind: 'decision'; requestId: string; decision: string }
  | { kind: 'interrupt'; runId: string | null }
  | { kind: 'delete' };

/** A call as the client recorded it, by the same clock. */
export interface Call {
  asked: Asked;
  sentAt: number;
  answeredAt: number;
  status: number;
  body: AnswerBody;
}

export interface AnswerBody {
  error?: { code: string; message: string };
  events?: { run: { id: string; status: string } | null }[];
  thread?: { status: string; last_run_id: string | null };
}

export interface History {
  calls: readonly Call[];
  events: readonly HistoryEvent[];
  whenBusy: 'reject' | 'enqueue' | 'interrupt';
  /** Up to here the stream was there before the calls. */
  startVersion: number;
}

/** The Thread between two commits: as much of it as decides which calls are accepted. */
interface State {
  live: readonly { id: string; pending: readonly string[] }[];
  ended: ReadonlyMap<string, string>;
  status: string;
  lastRunId: string | null;
  deleted: boolean;
}

interface Commit {
  events: HistoryEvent[];
  before: State;
  after: State;
}

/** Where a call stands in the one order: at the commit that it made, or after so many of them. */
interface Placed {
  call: Call;
  /** All that was answered before it was sent stands at or before this. */
  from: number;
  at: number;
}

const LOST: Placed['at'] = -1;

/**
 * Looks for one order of all calls in which each answer is right, that is the order of the stream and, for calls of which one was
 * answered before the other was sent, the order in time (F17). Answers what cannot be explained; nothing, if there is such an
 * order.
 *
 * Calls that had an effect stand at its commit. All others stand as early as they may, in the order of their answers:
 * the only bounds between calls are lower ones, so what does not fit there fits nowhere.
 */
export function unexplained(history: History): string[] {
  const commits = toCommits(history.events);
  const start = commits.filter(({ events }) => events[0]!.version <= history.startVersion).length;
  const { makers, wrong } = findMakers(history, commits, start);
  const placed: Placed[] = [];
  for (const call of history.calls.toSorted((a, b) => a.answeredAt - b.answeredAt)) {
    const before = placed.filter(({ call: { answeredAt } }) => answeredAt < call.sentAt);
    const from = Math.max(start, ...before.map(({ at }) => at));
    const made = makers.get(call);
    const at = made ?? placeWithoutEffect(history, commits, call, from);
    placed.push({ call, from, at: at === LOST ? from : at });
    if (made !== undefined) wrong.push(...checkEffect(history, commits, made, call, from));
    else if (at === LOST) wrong.push(`${tell(call)}: at no moment between call and answer was that right`);
  }
  return [...wrong, ...checkNamedInterrupts(commits, start, placed, makers)];
}

/** The stream cut into its transactions, with the state around each. Position k is after k commits. */
function toCommits(events: readonly HistoryEvent[]): Commit[] {
  const commits: Commit[] = [];
  let state: State = { live: [], ended: new Map(), status: 'IDLE', lastRunId: null, deleted: false };
  for (const event of events) {
    const last = commits.at(-1);
    const next = apply(state, event);
    if (last?.events[0]!.transaction === event.transaction) {
      last.events.push(event);
      last.after = next;
    } else {
      commits.push({ events: [event], before: state, after: next });
    }
    state = next;
  }
  return commits;
}

const ENDS: Record<string, string> = {
  'run.completed': 'completed',
  'run.failed': 'failed',
  'run.cancelled': 'cancelled',
  'run.expired': 'expired',
};

function apply(state: State, { type, data, runId }: HistoryEvent): State {
  const id = runId ?? '';
  const pendingOf = (change: (pending: readonly string[]) => readonly string[]): State => ({
    ...state,
    live: state.live.map((run) => (run.id === id ? { id, pending: change(run.pending) } : run)),
  });
  const end = ENDS[type];
  if (end !== undefined) {
    return { ...state, live: state.live.filter((run) => run.id !== id), ended: new Map([...state.ended, [id, end]]) };
  }
  switch (type) {
    case 'run.queued':
      return { ...state, live: [...state.live, { id, pending: [] }], lastRunId: id };
    case 'run.waiting':
      return pendingOf(() => (data.requests ?? []).map(({ requestId }) => requestId));
    case 'tool.confirmation_decided':
      return pendingOf((pending) => pending.filter((requestId) => requestId !== data.requestId));
    case 'thread.status_entered':
      return { ...state, status: data.status ?? '' };
    case 'deleted':
      return { ...state, deleted: true };
    default:
      return state;
  }
}

/** The event of a commit that only a caller can have caused; a cancellation beside a message is the message's. */
function causeOf({ events }: Commit): HistoryEvent | undefined {
  const find = (...types: string[]) => events.find(({ type }) => types.includes(type));
  return find('message.added', 'tool.confirmation_decided', 'deleted') ?? find('run.cancelled');
}

function couldHaveMade({ asked, status, body }: Call, { type, data, runId }: HistoryEvent): boolean {
  if (status !== 200) return false;
  switch (asked.kind) {
    case 'message':
      return type === 'message.added' && data.text === asked.text;
    case 'decision':
      return (
        type === 'tool.confirmation_decided' && data.requestId === asked.requestId && data.decision === asked.decision
      );
    case 'interrupt':
      return type === 'run.cancelled' && body.events?.[0]?.run?.id === runId;
    case 'delete':
      return type === 'deleted';
  }
}

const isNamed = ({ asked }: Call): boolean => asked.kind === 'interrupt' && asked.runId !== null;

/** Which call made which commit. Of several interrupts that name the Run each may have; that is for later. */
function findMakers(
  { calls }: History,
  commits: readonly Commit[],
  start: number,
): { makers: Map<Call, number>; wrong: string[] } {
  const makers = new Map<Call, number>();
  const wrong: string[] = [];
  commits.forEach((commit, i) => {
    const cause = i >= start ? causeOf(commit) : undefined;
    if (cause === undefined) return;
    const possible = calls.filter((call) => couldHaveMade(call, cause));
    const sure = possible.filter((call) => !isNamed(call));
    if (possible.length === 0)
      wrong.push(`${cause.type} at version ${cause.version} was asked for by no accepted call`);
    if (sure.length > 1)
      wrong.push(`${cause.type} at version ${cause.version} was answered to ${sure.map(tell).join(', ')}`);
    for (const call of sure) {
      if (makers.has(call)) wrong.push(`${tell(call)} had more than one effect`);
      makers.set(call, i + 1);
    }
  });
  return { makers, wrong };
}

/** Between call and answer, after all that was answered before, on a state that takes it, and told of as it then was. */
function checkEffect(history: History, commits: readonly Commit[], at: number, call: Call, from: number): string[] {
  const { events, before, after } = commits[at - 1]!;
  const wrong: string[] = [];
  const occurredAt = events[0]!.occurredAt ?? call.sentAt;
  if (occurredAt < call.sentAt || occurredAt > call.answeredAt) wrong.push('its effect is not between call and answer');
  if (from >= at) wrong.push('something that was answered before it was sent comes after it');
  if (!accepts(history, before, call.asked)) wrong.push('it should have been refused');
  if (!tellsOf(call, after)) wrong.push('the answer does not tell of the Thread as it was then');
  return wrong.map((what) => `${tell(call)}, version ${events[0]!.version}: ${what}`);
}

/** The first position at which the answer is right, LOST if there is none up to the first event of after the answer. */
function placeWithoutEffect(history: History, commits: readonly Commit[], call: Call, from: number): number {
  for (let at = from; at <= commits.length; at++) {
    const last = commits[at - 1];
    if (at > from && (last?.events[0]!.occurredAt ?? -Infinity) > call.answeredAt) return LOST;
    if (last !== undefined && isRightWithoutEffect(history, last.after, call)) return at;
  }
  return LOST;
}

function isRightWithoutEffect(history: History, state: State, call: Call): boolean {
  const { asked, status } = call;
  if (state.deleted) return status === 404;
  // A Run that has ended is answered as it is.
  if (status === 200) return asked.kind === 'interrupt' && state.ended.has(asked.runId ?? '') && tellsOf(call, state);
  // Retry-After is no explanation: what was too busy for a call must not have been.
  return status === 409 && !/Too many writers/.test(call.body.error?.message ?? '') && !accepts(history, state, asked);
}

/** What the specification says (docs/spec/decisions.md#state-conflicts, docs/spec/decisions.md#when-busy). */
function accepts({ whenBusy }: History, { live, ended, deleted }: State, asked: Asked): boolean {
  if (deleted) return false;
  switch (asked.kind) {
    case 'message':
      return live.length === 0 || whenBusy !== 'reject';
    case 'decision':
      return live.some(({ pending }) => pending.includes(asked.requestId));
    case 'interrupt':
      return asked.runId === null
        ? live.length > 0
        : ended.has(asked.runId) || live.some(({ id }) => id === asked.runId);
    case 'delete':
      return true;
  }
}

/** Whether what the answer shows of the Thread and its Run was so after the commit. */
function tellsOf({ asked, body }: Call, { live, ended, status, lastRunId }: State): boolean {
  if (asked.kind === 'delete') return true;
  const run = body.events?.[0]?.run;
  const { thread } = body;
  if (!run || thread?.status !== status || thread.last_run_id !== lastRunId) return false;
  if (asked.kind === 'interrupt') return ended.get(run.id) === run.status;
  return live.some(({ id }) => id === run.id) && (asked.kind !== 'message' || run.id === lastRunId);
}

/** A cancellation that nobody else made was made by one of those that named the Run, at its own place and time. */
function checkNamedInterrupts(
  commits: readonly Commit[],
  start: number,
  placed: readonly Placed[],
  makers: ReadonlyMap<Call, number>,
): string[] {
  const made = new Set(makers.values());
  return commits.flatMap((commit, i) => {
    const cause = i >= start && !made.has(i + 1) ? causeOf(commit) : undefined;
    if (cause?.type !== 'run.cancelled') return [];
    const occurredAt = cause.occurredAt ?? 0;
    const isMaker = ({ call, from, at }: Placed): boolean =>
      couldHaveMade(call, cause) &&
      at === i + 1 &&
      from <= i &&
      call.sentAt <= occurredAt &&
      occurredAt <= call.answeredAt;
    return placed.some(isMaker) ? [] : [`run.cancelled at version ${cause.version} fits none that named the Run`];
  });
}

function tell({ asked, status, sentAt, answeredAt }: Call): string {
  return `${JSON.stringify(asked)} (${sentAt}–${answeredAt}) → ${status}`;
}
