import type { Pool } from 'pg';
import type { RunJob } from '#event-store';
import {
  namedStatement,
  noteFailure,
  spanFrom,
  SpanKind,
  tracedFrom,
  traceParent,
  within,
  type Span,
  type SpanAbout,
  type TraceOrigin,
} from '#platform';
import { jobIdOf, type RunQueue } from './run-queue.ts';

const FIND_TRACES = namedStatement(import.meta.dirname, 'find-traces.sql');

/** How long a worker waits for the trace of a job. Without it, the job starts its own trace. */
const CONSUME_WAIT_MS = 500;
/** How long enqueueing waits for traces. RunEnqueuer drops jobs after 200 ms, and a job without a trace is as good. */
const ENQUEUE_WAIT_MS = 100;

/** A job of a process with tracing: its ids and the parent of its span. */
type TracedJob = RunJob & { trace?: Trace };

interface Trace {
  parent: string;
  link: string | null;
}

/**
 * Records each job as spans in the trace of its Run. `run_work` names the trace, so any process may enqueue the Run, however late,
 * even if the first job or its process was lost. Costs one read of these rows for each batch of jobs.
 */
export function traceQueue(queue: RunQueue, { pool, name }: { pool: Pool; name: string }): void {
  const consume = queue.consume.bind(queue);

  const readTraces = async (jobs: readonly RunJob[], waitMs: number): Promise<Map<string, Trace>> => {
    const values = [jobs.map(({ runId }) => runId)];
    const query = { ...FIND_TRACES, values, query_timeout: CONSUME_WAIT_MS };
    const found = pool.query<Trace & { runId: string }>(query).then(({ rows }) => rows);
    // `query_timeout` does not count the wait for a connection.
    const rows = await orNone(found, waitMs);
    return new Map(rows.map(({ runId, parent, link }) => [runId, { parent, link }]));
  };

  const traced =
    (enqueue: RunQueue['enqueue']): RunQueue['enqueue'] =>
    async (jobs) => {
      const traces = jobs.length === 0 ? new Map<string, Trace>() : await readTraces(jobs, ENQUEUE_WAIT_MS);
      const spans: Span[] = [];
      const tracedJobs = jobs.map((one): TracedJob => {
        const trace = traces.get(one.runId);
        if (trace === undefined) return one;
        const span = spanFrom(originOf(trace), 'offer', aboutJob(name, one, 'send'));
        spans.push(span);
        return { ...one, trace: { ...trace, parent: within(span, traceParent) ?? trace.parent } };
      });
      try {
        await enqueue(tracedJobs);
      } catch (error) {
        for (const span of spans) noteFailure(span, error);
        throw error;
      } finally {
        for (const span of spans) span.end();
      }
    };

  queue.enqueue = traced(queue.enqueue.bind(queue));
  queue.enqueueAhead = traced(queue.enqueueAhead.bind(queue));

  queue.consume = (handler, slots) =>
    consume(async ({ trace: told, ...one }: TracedJob) => {
      // A process without tracing enqueues jobs without it.
      const trace = told ?? (await readTraces([one], CONSUME_WAIT_MS)).get(one.runId);
      const origin = trace ? originOf(trace) : { headers: {} };
      return tracedFrom(origin, 'process', aboutJob(name, one, 'process'), () => handler(one));
    }, slots);
}

/** Returns the rows, or none if they fail or come too late. */
async function orNone<T>(found: Promise<T[]>, ms: number): Promise<T[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T[]>((resolve) => (timer = setTimeout(() => resolve([]), ms)));
  const inTime = await Promise.race([found.catch(() => []), late]);
  clearTimeout(timer);
  return inTime;
}

const originOf = ({ parent, link }: Trace): TraceOrigin => ({ headers: { traceparent: parent }, link });

function aboutJob(queue: string, job: RunJob, type: 'send' | 'process'): SpanAbout {
  return {
    kind: type === 'send' ? SpanKind.PRODUCER : SpanKind.CONSUMER,
    attributes: {
      'messaging.system': 'bullmq',
      'messaging.operation.name': type === 'send' ? 'offer' : 'process',
      'messaging.operation.type': type,
      'messaging.destination.name': queue,
      'messaging.message.id': jobIdOf(job),
      'spool.thread.id': job.threadId,
      'spool.run.id': job.runId,
    },
  };
}
