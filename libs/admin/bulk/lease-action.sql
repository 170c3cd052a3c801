-- Leases the oldest running bulk action that no process works on, for $1 ms. Returns no row if there is none.
update bulk_actions
set leased_until = now() + $1 * interval '1 millisecond'
where id = (
  select id from bulk_actions
  where state = 'running' and (leased_until is null or leased_until < now())
  order by id
  limit 1
  for update skip locked
)
returning id, action, actor_kind as "actorKind", actor_id as "actorId", actor_name as "actorName"
