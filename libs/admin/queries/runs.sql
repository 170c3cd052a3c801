-- Runs, newest first, each with its work row while it is live: one ($1), all of a Thread ($2), or those that are live, of an
-- organization ($3) or agent ($4); of a status ($5), after one ($6).
select r.run_id as id,
       r.thread_id    as "threadId",
       r.status, r.trigger,
       r.created_at   as "createdAt",
       case when r.status <> 'queued' then r.started_at end as "startedAt",
       r.completed_at as "completedAt",
       r.updated_at   as "updatedAt",
       r.error,
       t.organization_id as "organizationId",
       (select o.name from organizations o where o.id = t.organization_id) as "organizationName",
       t.agent_id     as "agentId",
       (select a.name from agents a where a.id = t.agent_id) as "agentName",
       w.state, w.limited_by as "limitedBy", w.dispatch, w.attempt, w.holder,
       w.due_at       as "dueAt",
       w.since
from run_summaries r
join thread_summaries t on t.thread_id = r.thread_id
left join run_work w on w.run_id = r.run_id
where ($1::text is null or r.run_id = $1)
  and ($2::text is null or r.thread_id = $2)
  and ($1::text is not null or $2::text is not null or r.run_id in (select l.run_id from run_work l))
  and ($3::text is null or w.organization_id = $3)
  and ($4::text is null or w.agent_id = $4)
  and ($5::text is null or r.status = $5)
  and ($6::text is null or r.run_id < $6)
order by r.run_id desc
limit $7
