-- What the model is given: stored messages, decisions and tool results, by a partial index that has no pieces in it.
select thread_id as "threadId", version, id, type, schema_version as "schemaVersion", data,
       run_id as "runId", attempt, public, occurred_at as "occurredAt"
from events
where thread_id = $1 and version > $2
  and type in ('message.added', 'assistant.message_added', 'tool.confirmation_decided', 'tool.started', 'tool.completed')
order by version
