-- Runs that wait for a person, newest first, with their open requests. Filters: Thread ($1), organization ($2), agent ($3).
-- Cursor: $4. At most $5 Runs; stops after $6 bytes.
select *
from (
  select waiting.*, sum(octet_length(requests::text)) over (order by "runId" desc rows unbounded preceding) as bytes
  from (
    select w.run_id          as "runId",
           w.thread_id       as "threadId",
           w.organization_id as "organizationId",
           w.agent_id        as "agentId",
           w.since,
           w.due_at          as "expiresAt",
           t.title           as "threadTitle",
           t.user_id         as "userId",
           (select o.name from organizations o where o.id = w.organization_id) as "organizationName",
           (select a.name from agents a where a.id = w.agent_id) as "agentName",
           asked.requests
    from run_work w
    join thread_summaries t on t.thread_id = w.thread_id
    join streams s on s.thread_id = w.thread_id
    cross join lateral (
      select coalesce(jsonb_agg(jsonb_build_object(
               'requestId', open.id,
               'toolCallId', event.data -> 'toolCallId',
               'toolName', event.data -> 'toolName',
               'title', event.data -> 'title',
               'toolInput', event.data -> 'toolInput',
               'destructive', coalesce(event.data -> 'destructive', 'false')
             ) order by open.place), '[]') as requests
      from jsonb_array_elements(s.state -> 'runs') run
      cross join lateral (
        select request ->> 'requestId' as id, place
        from jsonb_array_elements(run -> 'requests') with ordinality as requests (request, place)
        where request ->> 'decision' is null
      ) open
      -- Scans from the end of the stream, where open requests are, because no index has request ids.
      cross join lateral (
        select e.data
        from events e
        where e.thread_id = w.thread_id and e.type = 'tool.confirmation_requested' and e.data ->> 'requestId' = open.id
        order by e.version desc
        limit 1
      ) event
      where run ->> 'id' = w.run_id
    ) asked
    where w.state = 'waiting'
      and ($1::text is null or w.thread_id = $1)
      and ($2::text is null or w.organization_id = $2)
      and ($3::text is null or w.agent_id = $3)
      and ($4::text is null or w.run_id < $4)
    order by w.run_id desc
    limit $5
  ) waiting
) sized
where bytes - octet_length(requests::text) < $6
order by "runId" desc
