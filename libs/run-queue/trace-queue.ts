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

/** Of a job; one that is taken up without goes on in a trace of its own. */
const ANSWER_MS = 500;
/** Traces are not worth waiting for: an offer without one is as good, and after 200 ms it is none (run-offers.ts). */
const OFFER_ANSWER_MS = 100;

/** A job of a process that traces: ids, and where the Run's trace goes on. */
type TracedOffer = RunJob & { trace?: Trace };

interface Trace {
  parent: string;
  link: string | null;
}

/**
 * Has offers and jobs of the queue be spans of the Runs' traces. Whoever offers, and however late, the row in `run_work` says which
 * trace that is: the fast offer may have been lost, its process too. Costs a look at those rows for each lot of offers.
 */
export function traceQueue(queue: RunQueue, { pool, name }: { pool: Pool; name: string }): void {
  const consume = queue.consume.bind(queue);

  const readTraces = async (offers: readonly RunJob[], answerMs: number): Promise<Map<string, Trace>> => {
    const values = [offers.map(({ runId }) => runId)];
    const query = { ...FIND_TRACES, values, query_timeout: ANSWER_MS };
    const found = pool.query<Trace & { runId: string }>(query).then(({ rows }) => rows);
    // Beside `query_timeout`, which does not count the wait for a connection.
    const rows = await orNone(found, answerMs);
    return new Map(rows.map(({ runId, parent, link }) => [runId, { parent, link }]));
  };

  const traced =
    (offer: RunQueue['enqueue']): RunQueue['enqueue'] =>
    async (offers) => {
      const traces = offers.length === 0 ? new Map<string, Trace>() : await readTraces(offers, OFFER_ANSWER_MS);
      const spans: Span[] = [];
      const jobs = offers.map((one): TracedOffer => {
        const trace = traces.get(one.runId);
        if (trace === undefined) return one;
        const span = spanFrom(originOf(trace), 'offer', aboutJob(name, one, 'send'));
        spans.push(span);
        return { ...one, trace: { ...trace, parent: within(span, traceParent) ?? trace.parent } };
      });
      try {
        await offer(jobs);
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
    consume(async ({ trace: told, ...one }: TracedOffer) => {
      // Who does not trace offers without it.
      const trace = told ?? (await readTraces([one], ANSWER_MS)).get(one.runId);
      const origin = trace ? originOf(trace) : { headers: {} };
      return tracedFrom(origin, 'process', aboutJob(name, one, 'process'), () => handler(one));
    }, slots);
}

/** What comes in time; nothing else, also where it fails. */
async function orNone<T>(found: Promise<T[]>, ms: number): Promise<T[]> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<T[]>((resolve) => (timer = setTimeout(() => resolve([]), ms)));
  const inTime = await Promise.race([found.catch(() => []), late]);
  clearTimeout(timer);
  return inTime;
}

const originOf = ({ parent, link }: Trace): TraceOrigin => ({ headers: { traceparent: parent }, link });

function aboutJob(queue: string, offer: RunJob, type: 'send' | 'process'): SpanAbout {
  return {
    kind: type === 'send' ? SpanKind.PRODUCER : SpanKind.CONSUMER,
    attributes: {
      'messaging.system': 'bullmq',
      'messaging.operation.name': type === 'send' ? 'offer' : 'process',
      'messaging.operation.type': type,
      'messaging.destination.name': queue,
      'messaging.message.id': jobIdOf(offer),
      'spool.thread.id': offer.threadId,
      'spool.run.id': offer.runId,
    },
  };
}
