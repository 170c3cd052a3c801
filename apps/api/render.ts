import type { Agent } from '#agents';
import type * as wire from '#contract';
import type { FileRow } from '#files';
import type { RunSummary, ThreadSummary } from '#projections';

/** From what is stored to what callers see. Log entries are the domain's: `toLogEntry`. */
export function renderThread(row: ThreadSummary): wire.ThreadSummary {
  return {
    id: row.thread_id,
    agent_id: row.agent_id,
    userId: row.user_id,
    kind: row.kind,
    source: 'api',
    status: row.status,
    title: row.title,
    last_run_id: row.last_run_id,
    created_at: row.created_at,
    updated_at: row.updated_at,
  };
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

export function renderPublicFile(
  row: Pick<FileRow, 'id' | 'name' | 'mime_type' | 'size' | 'created_at'>,
): wire.PublicFile {
  return { id: row.id, name: row.name, mimeType: row.mime_type, size: row.size, createdAt: row.created_at };
}

export function renderAgent({ id, name, kind, published, description }: Agent): wire.AgentRecord {
  return { id, name, kind, published, description };
}
