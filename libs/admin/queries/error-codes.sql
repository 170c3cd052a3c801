-- The codes of errors that Runs have. Reads one entry of the index for each (run_summaries_by_error), at most 200.
with recursive codes as (
  (select error ->> 'code' as code from run_summaries where error is not null order by 1 limit 1)
  union all
  select (select r.error ->> 'code' from run_summaries r
          where r.error is not null and r.error ->> 'code' > codes.code
          order by 1
          limit 1)
  from codes
  where codes.code is not null
)
select code as value
from (select code from codes limit 200) as found
where code is not null
