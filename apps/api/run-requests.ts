import { encodeTime } from 'ulid';
import type { Pool } from 'pg';
import type { ConfirmationRequest, RunSummary } from '#contract';
import { BOUNDS } from '#domain';
import { BY_KEY, namedStatement } from '#platform';
import { ANSWER_BYTES } from './http/large-answers.ts';

const RUN_REQUESTS = namedStatement(import.meta.dirname, 'queries/run-requests.sql');

/** The most requests and decisions that are read, of one Thread and of all together. Bounds the memory of a response. */
const MAX_EVENTS = BOUNDS.transcripts.requests.value;
/** How far the clocks of two processes may differ, milliseconds. A larger value only means that older events are read. */
const CLOCK_SLACK_MS = 3_600_000;

/** A request or a decision of a Run, or a Run without requests, whose other fields are null. */
export interface RequestRow {
  runId: string;
  status: RunSummary['status'];
  type: 'tool.confirmation_requested' | 'tool.confirmation_decided' | null;
  /** The claim that requested the confirmation; null for decisions. */
  attempt: number | null;
  requestId: string | null;
  toolCallId: string | null;
  toolName: string | null;
  toolInput: Record<string, unknown> | null;
  decision: 'allow_once' | 'reject_once' | null;
  by: string | null;
  occurredAt: string | null;
}

/** Returns the confirmation requests of all Runs, by the id of the Run, from one query. Omits Runs deleted in the meantime. */
export async function readRunRequests(
  pool: Pool,
  runs: readonly Pick<RunSummary, 'id' | 'createdAt'>[],
): Promise<ReadonlyMap<string, ConfirmationRequest[]>> {
  if (runs.length === 0) return new Map();
  const createdAt = Math.min(...runs.map((run) => Date.parse(run.createdAt)));
  const before = `${encodeTime(Math.max(0, createdAt - CLOCK_SLACK_MS))}${'0'.repeat(16)}`;
  const values = [runs.map(({ id }) => id), before, MAX_EVENTS, ANSWER_BYTES];
  const { rows } = await pool.query<RequestRow>({ ...RUN_REQUESTS, ...BY_KEY, values });
  const ofRuns = new Map<string, RequestRow[]>();
  for (const row of rows) {
    const ofRun = ofRuns.get(row.runId);
    if (ofRun === undefined) ofRuns.set(row.runId, [row]);
    else ofRun.push(row);
  }
  return new Map([...ofRuns].map(([runId, ofRun]) => [runId, requestsOf(ofRun)]));
}

/**
 * Returns the requests of one Run from its events, oldest first. A waiting Run waits for the requests of its last claim only. An
 * undecided request of an earlier claim was dropped. If a later request asks for the same tool call, only that one is returned.
 */
export function requestsOf(rows: readonly RequestRow[]): ConfirmationRequest[] {
  const asked = rows.filter(({ type }) => type === 'tool.confirmation_requested');
  const decisions = new Map<string | null, RequestRow>();
  for (const row of rows) {
    if (row.type === 'tool.confirmation_decided') decisions.set(row.requestId, row);
  }
  const lastClaim = Math.max(...asked.map(({ attempt }) => attempt ?? 0));
  const newest = new Map(asked.map((row) => [row.toolCallId, row]));
  return asked.flatMap((row): ConfirmationRequest[] => {
    const { requestId, toolCallId, toolName, toolInput } = row;
    if (requestId === null || toolCallId === null || toolName === null) return [];
    const decided = decisions.get(requestId);
    const decision = decided?.decision ?? null;
    if (decided === undefined && newest.get(toolCallId) !== row) return [];
    const isOpen = row.status === 'waiting_input' && (row.attempt ?? 0) === lastClaim;
    return [
      {
        ...{ requestId, toolCallId, toolName, ...(toolInput === null ? {} : { toolInput }) },
        state: decision !== null ? STATES[decision] : isOpen ? 'pending' : 'withdrawn',
        decidedAt: decided?.occurredAt ?? null,
        decidedBy: decided?.by ?? null,
      },
    ];
  });
}

const STATES = { allow_once: 'allowed', reject_once: 'rejected' } as const;
