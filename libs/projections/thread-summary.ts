import { deriveTitle, type AgentKind, type StoredEvent, type ThreadStatus } from '#domain';
import type { ColumnType } from './column-types.ts';

/** One row of `thread_summaries`: the ThreadSummary of the contract, and its owners. Times are RFC 3339. */
export interface ThreadSummary {
  thread_id: string;
  agent_id: string;
  organization_id: string;
  user_id: string;
  kind: AgentKind;
  owner_person_id: string | null;
  owner_service_token_id: string | null;
  status: ThreadStatus;
  title: string | null;
  last_run_id: string | null;
  archived: boolean;
  created_at: string;
  updated_at: string;
  client_external_ref: string | null;
  /** Unique per token, Agent and user, unlike `client_external_ref`. A Thread has at most one of the two. */
  external_ref: string | null;
  /** The token that gave `external_ref`. */
  external_ref_token_id: string | null;
}

/** The columns of `thread_summaries`. Statements list them by `:thread_columns`. */
export const THREAD_COLUMNS = {
  thread_id: 'text',
  agent_id: 'text',
  organization_id: 'text',
  user_id: 'text',
  kind: 'text',
  owner_person_id: 'text',
  owner_service_token_id: 'text',
  status: 'text',
  title: 'text',
  last_run_id: 'text',
  archived: 'boolean',
  created_at: 'time',
  updated_at: 'time',
  client_external_ref: 'text',
  external_ref: 'text',
  external_ref_token_id: 'text',
} satisfies Record<keyof ThreadSummary, ColumnType>;

/** Returns the caller's reference for the Thread, given by either name. */
export function referenceOf(row: Pick<ThreadSummary, 'external_ref' | 'client_external_ref'>): string | null {
  return row.external_ref ?? row.client_external_ref;
}

/** Folds the events of a Thread. Pure: the append, `rebuild` and `verify` use the same function. */
export function foldThreadSummary(row: ThreadSummary | null, event: StoredEvent): ThreadSummary | null {
  if (event.type === 'thread.created') {
    if (row !== null) return row;
    const { agentId, organizationId, userId, kind, owner, clientExternalRef = null, externalRef } = event.data;
    return {
      thread_id: event.threadId,
      agent_id: agentId,
      organization_id: organizationId,
      user_id: userId,
      kind,
      owner_person_id: owner.personId,
      owner_service_token_id: owner.serviceTokenId,
      status: 'IDLE',
      title: null,
      last_run_id: null,
      archived: false,
      created_at: event.occurredAt,
      updated_at: event.occurredAt,
      client_external_ref: clientExternalRef,
      external_ref: externalRef?.value ?? null,
      external_ref_token_id: externalRef?.tokenId ?? null,
    };
  }
  return row && change(row, changedFields(row, event), event.occurredAt);
}

function changedFields(row: ThreadSummary, event: StoredEvent): Partial<ThreadSummary> {
  switch (event.type) {
    case 'thread.status_entered':
      return { status: event.data.status };
    case 'thread.archived':
      return { archived: true };
    case 'thread.unarchived':
      return { archived: false };
    case 'thread.title_set':
      return { title: event.data.title };
    case 'message.added':
      return { title: row.title ?? deriveTitle(event.data.text) };
    case 'run.queued':
      return { last_run_id: event.runId };
    default:
      return {};
  }
}

/**
 * Sets `updated_at` if another field changed (docs/spec/decisions.md#updated-at). Returns the same object if nothing
 * changed.
 */
export function change<Row extends { updated_at: string }>(row: Row, fields: Partial<Row>, at: string): Row {
  const changed = (Object.keys(fields) as (keyof Row)[]).some((name) => fields[name] !== row[name]);
  return changed ? { ...row, ...fields, updated_at: at } : row;
}
