-- Reads the fields that `?extended=true` adds to Threads ($1): the reference of the caller, and the last stored message. Uses the
-- index of the transcript. Skips steps without text, at most 100 per Thread. Reads the first 4,000 characters of a message, which
-- is more than a preview needs.
select t.thread_id                                       as "threadId",
       coalesce(t.external_ref, t.client_external_ref)   as "externalRef",
       m.type, m.text,
       m.occurred_at                                     as "createdAt"
from thread_summaries t
left join lateral (
  select n.type, n.text, n.occurred_at
  from (
    select e.type, left(e.data ->> 'text', 4000) as text, e.occurred_at, e.version
    from events e
    where e.thread_id = t.thread_id and e.type in ('message.added', 'assistant.message_added')
    order by e.version desc
    limit 100
  ) n
  where n.text <> ''
  order by n.version desc
  limit 1
) m on true
where t.thread_id = any ($1::text[])
