-- By which limit, if any, the Run $1 of the organization $2 and the agent $3 may not be claimed beside those that are; the
-- caller holds the locks of the limits. Where it is to be offered under the dispatch $4, it waits from then on, and its queue
-- time stands still, as it did while the queue was paused or away. $5: the limit of an organization that has none of its own.
--
-- One that comes while others of its agent wait already waits behind them; so does one of an organization whose others wait
-- for the organization's own limit. Beside those that are claimed, the places count that are kept for what was let in. Who was
-- claimed before, and was taken back or has its decisions now, does not stand in line again.
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
  -- Written so that no index of ready rows fits it: on a young table it was planned as a scan of that.
  where run_id = $1 and state || '' = 'ready' and dispatch = $4 and refusal.limited_by is not null
)
select limited_by as "limitedBy" from refusal
