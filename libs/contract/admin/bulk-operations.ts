import { z } from 'zod';
import { ulid } from '../scalars.ts';
import { bulkAction, bulkActionName, bulkActionRun } from './bulk-records.ts';
import type { AdminOperation } from './operation.ts';
import { ADMIN_LIMITS, emptyBody, nextCursor, nothing, page } from './parts.ts';
import { runFilter } from './run-filter.ts';

const bulkParams = z.object({ bulkActionId: ulid });
const bulkAnswer = z.strictObject({ bulkAction });

/** Cancel or retry all Runs that match filters. */
export const bulkOperations = {
  planBulkAction: {
    method: 'POST',
    path: '/bulk-actions',
    summary: 'Choose the Runs of a bulk action; changes none of them',
    description:
      `Chooses the Runs that match the filters now, at most ${ADMIN_LIMITS.bulkRuns}; 409 if more match. ` +
      'Without a status, `cancel` chooses live Runs and `retry` failed ones. The answer says how many Runs will be changed, ' +
      'and why others will not. If no Run can be changed, it is `done`. Start it within an hour.',
    params: nothing,
    query: nothing,
    body: z.strictObject({ action: bulkActionName, filter: z.strictObject(runFilter).default({}) }),
    status: 201,
    answer: bulkAnswer,
    form: 'json',
  },
  startBulkAction: {
    method: 'POST',
    path: '/bulk-actions/{bulkActionId}/start',
    summary: 'Start a planned bulk action',
    description:
      'The API processes change its Runs one after another, also if the caller disconnects or a process ends. ' +
      'Each Run is checked again. No Run is changed twice, so the request can be repeated. 409 if it was stopped, or planned over an hour ago.',
    params: bulkParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: bulkAnswer,
    form: 'json',
  },
  stopBulkAction: {
    method: 'POST',
    path: '/bulk-actions/{bulkActionId}/stop',
    summary: 'Stop a bulk action before its next Runs',
    description: 'Runs that were changed stay so. Has no effect on a bulk action that has ended.',
    params: bulkParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: bulkAnswer,
    form: 'json',
  },
  listBulkActions: {
    method: 'GET',
    path: '/bulk-actions',
    summary: 'List the bulk actions that were started, newest first',
    description: 'They are kept for 30 days.',
    params: nothing,
    query: z.object(page),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ bulkActions: z.array(bulkAction), nextCursor }),
    form: 'json',
  },
  getBulkAction: {
    method: 'GET',
    path: '/bulk-actions/{bulkActionId}',
    summary: 'Read a bulk action and its progress',
    description: 'Also one that is only planned.',
    params: bulkParams,
    query: nothing,
    body: emptyBody,
    status: 200,
    answer: bulkAnswer,
    form: 'json',
  },
  listBulkActionRuns: {
    method: 'GET',
    path: '/bulk-actions/{bulkActionId}/runs',
    summary: 'List the Runs of a bulk action, newest first',
    description: 'With the outcome of each Run, and the reason if it is not changed.',
    params: bulkParams,
    query: z.object({
      ...page,
      outcome: bulkActionRun.shape.outcome.optional().meta({ description: 'Only Runs with this outcome.' }),
    }),
    body: emptyBody,
    status: 200,
    answer: z.strictObject({ runs: z.array(bulkActionRun), nextCursor }),
    form: 'json',
  },
} as const satisfies Record<string, AdminOperation>;
