-- Sets the organization of at most $1 files that are older than the counters. The trigger of `files` counts them. A file of a
-- deleted Thread has no organization.
with
old as (
  select files.id, coalesce(threads.organization_id, agents.organization_id) as organization_id
  from files
  left join thread_summaries as threads on threads.thread_id = files.thread_id
  left join agents on agents.id = files.agent_id
  where files.organization_id is null and coalesce(threads.organization_id, agents.organization_id) is not null
  limit $1
  for update of files skip locked
),
counted as (
  update files set organization_id = old.organization_id from old where files.id = old.id returning files.id
)
select count(*)::integer as count from counted
