-- Finds the Agents of which an owner ($1, in the column `:owner`) has Threads. Needs one look-up for each Agent, for any
-- number of Threads.
with recursive owned (agent_id) as (
  (select agent_id from thread_summaries where :owner = $1 order by agent_id limit 1)
  union all
  select (select n.agent_id
          from thread_summaries n
          where n.:owner = $1 and n.agent_id > owned.agent_id
          order by n.agent_id
          limit 1)
  from owned
  where owned.agent_id is not null
)
select agent_id as id from owned where agent_id is not null
