-- Runs that need attention, by problem: count, start, and the oldest 5. Includes live Runs, and failed Runs
-- since $1 that are still the last of their Thread. Leaves out terminated and archived Threads, which need no other Run.
-- Counts failed Runs by Agent, error and cause, without the fields of a cause that differ between Runs with the same one.
-- Returns at most 200 groups, the largest, and the failing model providers that Runs wait for.
-- The filter `problem` of runs.sql has the same conditions for live Runs.
with found as (
  select case when state = 'waiting' then 'waiting_runs'
              -- A worker renews its lease three times before it expires, and the reaper runs each second.
              when state = 'leased' and due_at < now() - interval '5 seconds' then 'lease_over'
              when state = 'ready' and limited_by is null then 'backlog' end as kind,
         run_id,
         case state when 'leased' then due_at else since end as since,
         null::text as agent_id, null::text as code, null::jsonb as cause
  from run_work
  union all
  select 'failed_runs', r.run_id, r.completed_at, t.agent_id, r.error ->> 'code',
         r.cause - '{attempt,message,requestId,waitedMs,step}'::text[]
  from run_summaries r
  join thread_summaries t on t.thread_id = r.thread_id
  where r.error is not null and r.completed_at >= $1
    and t.last_run_id = r.run_id and t.status <> 'TERMINATED' and not t.archived
),
counted as (
  select kind, agent_id, code, cause,
         count(*)::integer as count,
         min(since) as since,
         (array_agg(run_id order by since, run_id))[1:5] as run_ids
  from found
  where kind is not null
  group by kind, agent_id, code, cause
  order by kind = 'failed_runs', count desc, min(since)
  limit 200
),
failing as (
  select 'provider_failing' as kind, null::text as agent_id, code, cause, waiting.count, opened_at as since, run_ids
  from provider_circuits
  cross join lateral (
    select count(*)::integer as count, (array_agg(run_id order by since, run_id))[1:5] as run_ids
    from run_work
    join streams on streams.thread_id = run_work.thread_id
    where run_work.state = 'delayed' and run_work.due_at > now()
      and streams.state -> 'runs' -> 0 -> 'streak' ->> 'circuit' = provider_circuits.id
  ) as waiting
  where waiting.count > 0
)
select kind, count, since, agent_id as "agentId", code, cause,
       (select a.name from agents a where a.id = counted.agent_id) as "agentName",
       (select json_agg(json_build_object('id', r.run_id, 'threadId', r.thread_id, 'status', r.status, 'error', r.error,
                 'mayBeRetried', counted.kind = 'failed_runs',
                 'agentName', (select a.name from agents a where a.id = t.agent_id)) order by i)
        from unnest(run_ids) with ordinality as oldest (run_id, i)
        join run_summaries r on r.run_id = oldest.run_id
        join thread_summaries t on t.thread_id = r.thread_id) as runs
from (select * from counted union all select * from failing) as counted
union all
-- Files whose bytes a reader did not find.
select 'lost_files', count(*)::integer, min(lost_at), null, null, null, null, '[]'::json
from files where lost_at is not null having count(*) > 0
