import type { Pool } from 'pg';
import type { RunSummary, ThreadSummary } from '#contract';
import { previewOf } from '#domain';
import { BY_KEY, isDatabaseUnavailable, namedStatement } from '#platform';
import type { ApiRequest } from './http/caller.ts';
import { readRunRequests } from './run-requests.ts';

const THREAD_EXTRAS = namedStatement(import.meta.dirname, 'queries/thread-extras.sql');

/** The parts of a plain answer that have optional fields. */
interface Extendable {
  thread?: ThreadSummary;
  threads?: ThreadSummary[];
  run?: RunSummary | null;
  runs?: RunSummary[];
  /** The results of sent events. */
  events?: { run: RunSummary | null }[];
}

type ThreadExtras = Required<Pick<ThreadSummary, 'externalRef' | 'lastMessage'>>;

/**
 * Adds the optional fields beyond the contract (`?extended=true`) to a plain answer. Reads their current values for fresh and
 * replayed answers and for reads; stored answers stay plain. If the database is unavailable, the answer stays plain, because
 * a 503 would hide that a write was done.
 */
export class Extensions {
  constructor(private readonly pool: Pool) {}

  /** Returns the answer with the optional fields, or unchanged if the request does not ask for them. */
  async extend<Plain extends Extendable>({ input }: ApiRequest, plain: Plain): Promise<Plain> {
    if (!input.extended) return plain;
    const { thread, threads, run, runs, events } = plain;
    const shownThreads = [...(thread ? [thread] : []), ...(threads ?? [])];
    const ofThreads = (threads ?? []).map((one) => one.run);
    const shown = [run, ...(runs ?? []), ...(events ?? []).map((event) => event.run), ...ofThreads];
    const shownRuns = shown.flatMap((one) => one ?? []);
    const [extras, requests] = await Promise.all([
      this.readThreadExtras(shownThreads.map(({ id }) => id)),
      orNone(readRunRequests(this.pool, shownRuns)),
    ]);
    const withRequests = <Run extends RunSummary | null>(one: Run): Run => {
      const ofRun = one && requests.get(one.id);
      return ofRun ? { ...one, requests: ofRun } : one;
    };
    const withExtras = (one: ThreadSummary): ThreadSummary => ({
      ...one,
      ...extras.get(one.id),
      ...(one.run && { run: withRequests(one.run) }),
    });
    return {
      ...plain,
      ...(thread && { thread: withExtras(thread) }),
      ...(threads && { threads: threads.map(withExtras) }),
      ...(run && { run: withRequests(run) }),
      ...(runs && { runs: runs.map(withRequests) }),
      ...(events && { events: events.map((event) => ({ ...event, run: withRequests(event.run) })) }),
    };
  }

  /** Does the same for an answer that is already text, fresh or stored. */
  async extendAnswer<Answer extends { body: string }>(request: ApiRequest, answer: Answer): Promise<Answer> {
    if (!request.input.extended) return answer;
    const plain = JSON.parse(answer.body) as Extendable;
    return { ...answer, body: JSON.stringify(await this.extend(request, plain)) };
  }

  /** Reads the fields of all Threads in one query. Omits Threads deleted in the meantime. */
  private async readThreadExtras(threadIds: readonly string[]): Promise<ReadonlyMap<string, ThreadExtras>> {
    if (threadIds.length === 0) return new Map();
    const read = this.pool.query<ExtrasRow>({ ...THREAD_EXTRAS, ...BY_KEY, values: [threadIds] });
    return orNone(read.then(({ rows }) => new Map(rows.map((row) => [row.threadId, toExtras(row)]))));
  }
}

/** Returns what was read, or nothing if the database is unavailable. */
async function orNone<Extras>(read: Promise<ReadonlyMap<string, Extras>>): Promise<ReadonlyMap<string, Extras>> {
  return read.catch((error: unknown) => {
    if (isDatabaseUnavailable(error)) return new Map<string, Extras>();
    throw error;
  });
}

interface ExtrasRow {
  threadId: string;
  externalRef: string | null;
  /** Null, like the next two, if the Thread has no message. */
  type: 'message.added' | 'assistant.message_added' | null;
  text: string | null;
  createdAt: string | null;
}

function toExtras({ externalRef, type, text, createdAt }: ExtrasRow): ThreadExtras {
  if (text === null || createdAt === null) return { externalRef, lastMessage: null };
  const role = type === 'message.added' ? 'user' : 'agent';
  return { externalRef, lastMessage: { role, text: previewOf(text), createdAt } };
}
