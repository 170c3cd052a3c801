import type { Pool } from 'pg';
import { ADMIN_LIMITS, type BulkAction, type BulkActionRun, type ManagedRun } from '#contract';
import { NEWER_RUN, reject } from '#domain';
import { namedStatement, newId, rethrowUnavailable, transact } from '#platform';
import { audited } from '../audit.ts';
import type { SomeHandlers } from '../handlers.ts';
import { AdminReader, pageOf, type RunsWanted } from '../reader.ts';
import { AdminRefused, missing } from '../refused.ts';
import type { BulkRunner } from './bulk-runner.ts';

const PLAN_RUNS = namedStatement(import.meta.dirname, 'plan-runs.sql').text;
const BULK_ACTIONS = namedStatement(import.meta.dirname, 'bulk-actions.sql').text;
const BULK_ACTION_RUNS = namedStatement(import.meta.dirname, 'bulk-action-runs.sql').text;

/** Rows of one read while Runs are chosen. */
const PAGE = 1_000;

/** Statuses of the Runs that each action can change; the first one of `retry` is the default. */
const STATUSES: Record<BulkAction['action'], readonly ManagedRun['status'][]> = {
  cancel: ['queued', 'booting', 'running', 'waiting_input'],
  retry: ['failed', 'cancelled', 'expired'],
};

type Filter = BulkAction['filter'];
type BulkOperation =
  | 'planBulkAction'
  | 'startBulkAction'
  | 'stopBulkAction'
  | 'listBulkActions'
  | 'getBulkAction'
  | 'listBulkActionRuns';

/** Handles bulk actions: planned by one request, started by another, and then carried out by the BulkRunner. */
export function bulkHandlers({ pool, bulk }: { pool: Pool; bulk: BulkRunner }): SomeHandlers<BulkOperation> {
  return {
    planBulkAction: async ({ body: { action, filter } }) => ({
      bulkAction: await find(pool, await plan(pool, action, filter)),
    }),

    startBulkAction: async ({ params: { bulkActionId: id } }, { actor }) => {
      const { state, action, filter, runs } = await find(pool, id);
      if (state === 'stopped') throw new AdminRefused('conflict', 'The bulk action was stopped. Plan another one.');
      const isStarted = await audited(pool, actor, async (client, note) => {
        const { rowCount } = await client.query(
          `update bulk_actions
           set state = 'running', started_at = now(), actor_kind = $2, actor_id = $3, actor_name = $4
           where id = $1 and state = 'planned' and planned_at > now() - interval '1 hour'`,
          [id, actor.kind, actor.id, actor.name],
        );
        if (rowCount === 0) return false;
        const details = { action, filter, runs };
        note({ action: 'bulk_action.started', targetId: id, organizationId: filter.organizationId ?? null, details });
        return true;
      });
      const bulkAction = await find(pool, id);
      if (!isStarted && bulkAction.state === 'planned')
        throw new AdminRefused('conflict', 'The bulk action was planned over an hour ago. Plan another one.');
      bulk.nudge();
      return { bulkAction };
    },

    stopBulkAction: async ({ params: { bulkActionId: id } }, { actor }) => {
      const { filter } = await find(pool, id);
      await audited(pool, actor, async (client, note) => {
        const { rowCount } = await client.query(
          `update bulk_actions set state = 'stopped', ended_at = now() where id = $1 and state in ('planned', 'running')`,
          [id],
        );
        if (rowCount === 0) return;
        note({ action: 'bulk_action.stopped', targetId: id, organizationId: filter.organizationId ?? null });
      });
      return { bulkAction: await find(pool, id) };
    },

    listBulkActions: async ({ query: { limit, cursor } }) => {
      const rows = await read<BulkAction>(pool, BULK_ACTIONS, [null, cursor ?? null, limit + 1]);
      const { page, nextCursor } = pageOf(rows, limit);
      return { bulkActions: page, nextCursor };
    },

    getBulkAction: async ({ params: { bulkActionId } }) => ({ bulkAction: await find(pool, bulkActionId) }),

    listBulkActionRuns: async ({ params: { bulkActionId }, query: { limit, cursor, outcome } }) => {
      await find(pool, bulkActionId);
      const values = [bulkActionId, outcome ?? null, cursor ?? null, limit + 1];
      const { page, nextCursor } = pageOf(await read<BulkActionRun>(pool, BULK_ACTION_RUNS, values), limit);
      return { runs: page, nextCursor };
    },
  };
}

/** Stores a bulk action with the Runs that match now, and returns its id. */
async function plan(pool: Pool, action: BulkAction['action'], filter: Filter): Promise<string> {
  const { status } = filter;
  if (status !== undefined && !STATUSES[action].includes(status))
    throw new AdminRefused('invalid_request', `body.filter.status: must be one of ${STATUSES[action].join(', ')}`);
  const wanted = action === 'cancel' ? { ...filter, live: true } : { ...filter, status: status ?? STATUSES.retry[0]! };
  const { runIds, touches } = await choose(new AdminReader(pool), wanted);
  const reasons = [reject('thread_terminated'), reject('thread_archived'), reject('run_not_retryable', NEWER_RUN)];
  const id = newId();
  await transact(pool, async (client) => {
    await client.query(
      `insert into bulk_actions (id, action, state, filter, touches) values ($1, $2, 'planned', $3, $4)`,
      [id, action, JSON.stringify(filter), JSON.stringify(touches)],
    );
    const messages = reasons.map(({ message }) => (action === 'retry' ? message : null));
    await client.query({ text: PLAN_RUNS, values: [id, runIds, ...messages] });
    await client.query(
      `update bulk_actions set state = 'done', ended_at = now()
       where id = $1 and not exists (select from bulk_action_runs where action_id = $1 and outcome is null)`,
      [id],
    );
  });
  return id;
}

async function choose(
  reader: AdminReader,
  wanted: RunsWanted,
): Promise<{ runIds: string[]; touches: BulkAction['touches'] }> {
  const runIds: string[] = [];
  const [organizations, agents] = [new Set<string>(), new Set<string>()];
  const times: string[] = [];
  for (let cursor: string | undefined; ;) {
    const runs = await reader.runs({ ...wanted, cursor, limit: PAGE });
    for (const { id, organizationId, agentId, createdAt } of runs) {
      runIds.push(id);
      organizations.add(organizationId);
      agents.add(agentId);
      times.push(createdAt);
    }
    if (runIds.length > ADMIN_LIMITS.bulkRuns)
      throw new AdminRefused(
        'conflict',
        `More than ${ADMIN_LIMITS.bulkRuns} Runs match. Add a filter, such as a time.`,
      );
    if (runs.length < PAGE) break;
    cursor = runs.at(-1)!.id;
  }
  times.sort();
  const created = { firstCreatedAt: times[0] ?? null, lastCreatedAt: times.at(-1) ?? null };
  return { runIds, touches: { organizations: organizations.size, agents: agents.size, ...created } };
}

async function find(pool: Pool, id: string): Promise<BulkAction> {
  const [row] = await read<BulkAction>(pool, BULK_ACTIONS, [id, null, 1]);
  if (row === undefined) throw missing('bulk action', id);
  return row;
}

async function read<Row extends object>(pool: Pool, text: string, values: unknown[]): Promise<Row[]> {
  return (await pool.query<Row>({ text, values }).catch(rethrowUnavailable)).rows;
}
