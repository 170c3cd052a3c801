import type { Pool } from 'pg';
import type { WaitingRun } from '#contract';
import { namedStatement, rethrowUnavailable } from '#platform';
import { changeThread } from './change-run.ts';
import type { SomeHandlers } from './handlers.ts';
import { AdminReader, PAGE_BYTES } from './reader.ts';
import { missing } from './refused.ts';
import { findRun, findThread, type ThreadHandlerParts } from './thread-handlers.ts';

const WAITING_RUNS = namedStatement(`${import.meta.dirname}/queries`, 'waiting-runs.sql').text;
const CONFIRMATION = namedStatement(`${import.meta.dirname}/queries`, 'confirmation.sql').text;

/** Handles confirmation requests of Runs, which operators can decide for people. */
export function confirmationHandlers(
  parts: ThreadHandlerParts,
): SomeHandlers<'listConfirmations' | 'answerConfirmation'> {
  const reader = new AdminReader(parts.pool);
  return {
    listConfirmations: async ({ query: { limit, threadId, organizationId, agentId, cursor } }) => {
      if (threadId !== undefined) await findThread(reader, threadId);
      const values = [threadId, organizationId, agentId, cursor, limit + 1, PAGE_BYTES].map((value) => value ?? null);
      type Row = WaitingRun & { bytes: string };
      const { rows } = await parts.pool.query<Row>({ text: WAITING_RUNS, values }).catch(rethrowUnavailable);
      const waiting = rows.slice(0, limit).map(({ bytes: _, ...run }) => run);
      const isCut = rows.length > limit || Number(rows.at(-1)?.bytes ?? 0) >= PAGE_BYTES;
      return { waiting, nextCursor: isCut ? (waiting.at(-1)?.runId ?? null) : null };
    },

    answerConfirmation: async ({ params: { threadId, requestId }, body: { decision } }, { actor }) => {
      const { organizationId } = await findThread(reader, threadId);
      const { runId, toolName } = await findConfirmation(parts.pool, threadId, requestId);
      const details = { threadId, requestId, toolName, decision };
      const entry = { action: 'run.confirmation_answered', targetId: runId, organizationId, details };
      const command = { type: 'decide_permission', requestId, decision, by: actor.id } as const;
      await changeThread(parts, threadId, command, { actor, entry });
      return { run: await findRun(reader, runId) };
    },
  };
}

/** Returns a confirmation request, decided or not. Throws AdminRefused if the Thread never had it. */
async function findConfirmation(
  pool: Pool,
  threadId: string,
  requestId: string,
): Promise<{ runId: string; toolName: string }> {
  const { rows } = await pool
    .query<{ runId: string; toolName: string }>({ text: CONFIRMATION, values: [threadId, requestId] })
    .catch(rethrowUnavailable);
  if (rows[0] === undefined) throw missing('confirmation', requestId);
  return rows[0];
}
