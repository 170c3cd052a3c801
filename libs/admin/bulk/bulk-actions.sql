-- A page of bulk actions with their counts, newest first: the one with the id $1, or those that were started, before the cursor
-- $2, at most $3.
select b.id, b.action, b.state, b.filter, b.touches,
       b.planned_at as "plannedAt",
       b.started_at as "startedAt",
       b.ended_at   as "endedAt",
       case when b.actor_id is not null
            then json_build_object('kind', b.actor_kind, 'id', b.actor_id, 'name', b.actor_name) end as "startedBy",
       counts.runs, counts.done, counts.not_done as "notDone", counts.left_over as "left",
       coalesce((
         select json_agg(json_build_object('reason', reason, 'count', count) order by count desc, reason)
         from (
           select reason, count(*)::integer as count
           from bulk_action_runs
           where action_id = b.id and outcome = 'not_done'
           group by reason
           order by count desc, reason
           limit 20
         ) as reasons
       ), '[]') as reasons
from bulk_actions b
cross join lateral (
  select count(*)::integer as runs,
         count(*) filter (where outcome = 'done')::integer as done,
         count(*) filter (where outcome = 'not_done')::integer as not_done,
         count(*) filter (where outcome is null)::integer as left_over
  from bulk_action_runs
  where action_id = b.id
) as counts
where ($1::text is null or b.id = $1)
  and ($1::text is not null or b.started_at is not null)
  and ($2::text is null or b.id < $2)
order by b.id desc
limit $3
