-- Returns which limit, if any, forbids claiming the Run $1 of the organization $2 and the agent $3. The caller holds the locks of
-- the limits. If the Run is ready under the dispatch $4, it then waits for the limit, and its queue time stops, as it did while the
-- queue was paused or unavailable. $5: the limit of an organization that has no own limit.
--
-- A new Run waits behind earlier Runs that wait for the limit of the same agent or of the organization. Claimed Runs and admitted
-- Runs count toward a limit. A Run that was claimed before, and was requeued or has its decisions now, does not wait in line again.
with
run as (
  select attempt = 0 and not (state = 'ready' and limited_by is not null) as is_newcomer from run_work where run_id = $1
),
refusal as materialized (
  select case
    when (select count(*) from run_work
          where (state = 'leased' or (state = 'ready' and limited_by is not null and run.is_newcomer))
            and organization_id = $2 and agent_id = $3) >= agent_runs
      or agent_runs is not null and run.is_newcomer
         and exists (select from run_work
                     where state = 'limited' and organization_id = $2 and agent_id = $3 and limited_by = 'agent')
    then 'agent'
    when (select count(*) from run_work
          where (state = 'leased' or (state = 'ready' and limited_by is not null and run.is_newcomer))
            and organization_id = $2) >= coalesce(organization_runs, $5::integer)
      or coalesce(organization_runs, $5::integer) is not null and run.is_newcomer
         and exists (select from run_work
                     where state = 'limited' and organization_id = $2 and limited_by = 'organization')
    then 'organization'
  end as limited_by
  from concurrency_limits, run
  where agent_id = $3
),
refused as (
  update run_work
  set state      = 'limited',
      limited_by = refusal.limited_by,
      queue_left = due_at - least(clock_timestamp(), (select greatest(since, paused_at) from queue_controls
                                                      where paused_at is not null order by paused_at limit 1)),
      due_at     = null
  from refusal
  -- No index of ready rows matches this expression. On a new table, the planner would scan that index.
  where run_id = $1 and state || '' = 'ready' and dispatch = $4 and refusal.limited_by is not null
)
select limited_by as "limitedBy" from refusal
