-- Adds the Runs $2 to the bulk action $1, those that cannot be changed with the reason: their Thread is terminated ($3) or
-- archived ($4), or has a newer Run ($5). A null reason does not count. The change checks each Run again.
insert into bulk_action_runs (action_id, run_id, thread_id, outcome, reason)
select $1, run_id, thread_id, case when reason is not null then 'not_done' end, reason
from (
  select r.run_id, r.thread_id,
         case when t.status = 'TERMINATED' then $3::text
              when t.archived then $4::text
              when t.last_run_id <> r.run_id then $5::text end as reason
  from unnest($2::text[]) as chosen (run_id)
  join run_summaries r on r.run_id = chosen.run_id
  join thread_summaries t on t.thread_id = r.thread_id
) as found
