-- A page of Runs, newest first, live ones with their work item. Filters: id ($1), Thread ($2), live ($7), organization ($3),
-- agent ($4), status ($5), error code ($8), created since ($9), which implies ids from $10, user ($12), causes ($13),
-- reference ($14), ended since ($15), may be retried ($16), problem of the overview ($17). Cursor: $6.
--
-- Uses `any (array (…))` instead of a join or `in`: the planner removes absent filters, and turns the others into index keys.
-- Within an `or`, `in (select …)` would filter each row of a full scan.
select r.run_id as id,
       r.thread_id    as "threadId",
       r.status, r.trigger,
       r.created_at   as "createdAt",
       case when r.status <> 'queued' then r.started_at end as "startedAt",
       r.completed_at as "completedAt",
       r.updated_at   as "updatedAt",
       r.error, r.cause,
       retry.may_be as "mayBeRetried",
       case when t.last_run_id <> r.run_id then t.last_run_id end as "newerRunId",
       t.organization_id as "organizationId",
       (select o.name from organizations o where o.id = t.organization_id) as "organizationName",
       t.agent_id     as "agentId",
       (select a.name from agents a where a.id = t.agent_id) as "agentName",
       t.user_id      as "userId",
       t.title        as "threadTitle",
       w.state, w.limited_by as "limitedBy", w.dispatch, w.attempt, w.holder,
       w.due_at       as "dueAt",
       w.since
from run_summaries r
join thread_summaries t on t.thread_id = r.thread_id
left join run_work w on w.run_id = r.run_id
-- Same rule as retry_run of the domain, for operators.
cross join lateral (
  select r.run_id = t.last_run_id and not t.archived and t.status <> 'TERMINATED'
           and r.status in ('failed', 'cancelled', 'expired') as may_be
) as retry
where ($1::text is null or r.run_id = $1)
  and ($2::text is null or r.thread_id = $2)
  and ($7::boolean is not true or r.run_id = any (array(
        select l.run_id from run_work l
        where ($3::text is null or l.organization_id = $3)
          and ($4::text is null or l.agent_id = $4)
          and ($5::text is null or l.state = any (case $5 when 'queued' then array['ready', 'delayed', 'limited']
                                                          when 'waiting_input' then array['waiting']
                                                          else array['leased'] end))
          and ($6::text is null or l.run_id < $6)
          and ($10::text is null or l.run_id >= $10)
        order by l.run_id desc
        -- With the other conditions below, all live Runs are looked through: a page of them could have none that matches.
        limit case when $5 in ('booting', 'running') or $9::timestamptz is not null or $13::text[] is not null
                     or coalesce($8::text, $12::text, $14::text, $15::timestamptz::text, $16::boolean::text) is not null then null else $11::integer end)))
  and ($3::text is null or t.organization_id = $3 and t.agent_id = any (array(
        select a.id from agents a where a.organization_id = $3)))
  and ($4::text is null or t.agent_id = $4)
  and ($5::text is null or r.status = $5)
  and ($6::text is null or r.run_id < $6)
  and ($8::text is null or r.error ->> 'code' = $8)
  -- Of a provider that fails, the causes are those of its circuit: the last attempt of a Run that waits can have another.
  and ($13::text[] is null or $17 = 'provider_failing' or r.cause is not null and cause_group(r.cause) = any ($13::text[]::jsonb[]))
  and ($9::timestamptz is null or r.created_at >= $9)
  and ($10::text is null or r.run_id >= $10)
  and ($12::text is null or r.thread_id = any (array(
        -- The index of users begins with the agent.
        select u.thread_id from thread_summaries u
        where u.user_id = $12 and u.agent_id = any (array(select a.id from agents a)))))
  and ($14::text is null or r.thread_id = any (array(
        select e.thread_id from thread_summaries e
        where coalesce(e.external_ref, e.client_external_ref) = $14 and e.agent_id = any (array(select a.id from agents a)))))
  and ($15::timestamptz is null or r.completed_at >= $15)
  and ($16::boolean is null or retry.may_be = $16)
  -- Same conditions as in overview-problems.sql.
  and ($17::text is null or r.run_id = any (array(
        select p.run_id from run_work p
        where case $17
                when 'lease_over' then p.state = 'leased' and p.due_at < now() - interval '5 seconds'
                when 'backlog' then p.state = 'ready' and p.limited_by is null
                else p.state = 'delayed' and p.due_at > now() and exists (
                       select from streams
                       join provider_circuits c on c.id = streams.state -> 'runs' -> 0 -> 'streak' ->> 'circuit'
                       where streams.thread_id = p.thread_id and ($13::text[] is null or cause_group(c.cause) = any ($13::text[]::jsonb[])))
              end)))
order by r.run_id desc
limit $11
