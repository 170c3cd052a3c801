-- The different causes that Runs have. Reads one entry of the index for each (run_summaries_by_cause), at most 5,000.
with recursive causes as (
  (select cause_group(cause) as cause from run_summaries where cause is not null order by 1 limit 1)
  union all
  select (select cause_group(r.cause) from run_summaries r
          where r.cause is not null and cause_group(r.cause) > causes.cause
          order by 1
          limit 1)
  from causes
  where causes.cause is not null
)
select cause
from (select cause from causes limit 5000) as found
where cause is not null
