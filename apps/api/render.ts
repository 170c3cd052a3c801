import type { Agent } from '#agents';
import type * as wire from '#contract';
import type { FileRow } from '#files';
import type { Config } from '#platform';
import { referenceOf, type RunSummary, type ThreadSummary } from '#projections';

/** The setting that adds the older fields to answers (docs/api/compatibility.md). */
export type Rendering = Pick<Config, 'COMPATIBILITY_FIELDS'>;

/** Returns the wire format of a stored Thread. The domain renders log entries: `toLogEntry`. */
export function renderThread(row: ThreadSummary, { COMPATIBILITY_FIELDS }: Rendering): wire.ThreadSummary {
  const thread = {
    id: row.thread_id,
    agent_id: row.agent_id,
    userId: row.user_id,
    kind: row.kind,
    source: 'api' as const,
    status: row.status,
    title: row.title,
    last_run_id: row.last_run_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
  return COMPATIBILITY_FIELDS === 'on' ? { ...thread, ...olderFields(row) } : thread;
}

function olderFields(row: ThreadSummary): wire.CompatibleThread {
  const { owner_person_id: person, owner_service_token_id: service } = row;
  return {
    client_external_ref: referenceOf(row),
    attributed_user: person !== null && service !== null ? { id: person } : null,
    // A Thread has at least one owner.
    created_by: { id: service ?? person ?? '' },
  };
}

/** Returns the result of one event of a batch. `requestId` is the id given by either name. */
export function renderEventResult(
  type: wire.ThreadEventInput['type'],
  requestId: string | null,
  run: RunSummary | undefined,
  { COMPATIBILITY_FIELDS }: Rendering,
): wire.SendEventsAnswer['events'][number] {
  const result = { type, requestId, run: run === undefined ? null : renderRun(run) };
  const older: wire.CompatibleEventResult = { clientRequestId: requestId };
  return COMPATIBILITY_FIELDS === 'on' ? { ...result, ...older } : result;
}

export function renderRun(row: RunSummary): wire.RunSummary {
  return {
    id: row.run_id,
    status: row.status,
    trigger: row.trigger,
    createdAt: row.created_at,
    startedAt: row.status === 'queued' ? null : row.started_at,
    completedAt: row.completed_at,
    updatedAt: row.updated_at,
    error: row.error,
    finalOutput: row.final_output,
  };
}

export function renderThreadFile(row: FileRow): wire.ThreadFile {
  const { kind, thread_id } = row;
  const { id, name, mimeType, size, createdAt } = renderPublicFile(row);
  return { id, name, mimeType, size, kind, committed: thread_id !== null, createdAt };
}

/** Adds the file's Thread (null for a draft) and its kind. */
export function renderExtendedFile(row: FileRow): wire.PublicFile {
  return { ...renderPublicFile(row), threadId: row.thread_id, kind: row.kind };
}

export function renderPublicFile(
  row: Pick<FileRow, 'id' | 'name' | 'mime_type' | 'size' | 'created_at'>,
): wire.PublicFile {
  return { id: row.id, name: row.name, mimeType: row.mime_type, size: row.size, createdAt: row.created_at };
}

export function renderAgent({ id, name, kind, published, description }: Agent): wire.AgentRecord {
  return { id, name, kind, published, description };
}
