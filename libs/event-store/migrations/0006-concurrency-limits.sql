-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- How many Runs of an organization are executed at once; null: as many as there are slots. That of an agent is in its manifest.
alter table organizations add column max_runs integer check (max_runs > 0);

-- Processes remember limits as they remember agents.
create constraint trigger policy_changed after update on organizations deferrable initially deferred for each row
  when (old.max_runs is distinct from new.max_runs)
  execute function raise_policy_version();

-- `limited`: to be offered once a Run of its agent or organization ends. `since` is then when it became ready first, its place
-- in line, also when it has been let in. The previous release never writes it, and leaves it alone.
alter table run_work drop constraint run_work_state_check;
alter table run_work add constraint run_work_state_check
  check (state in ('ready', 'leased', 'waiting', 'delayed', 'limited'));
-- By which limit it waits, or waited until it was let in: then it is ready, and a place is kept for it.
alter table run_work add column limited_by text check (limited_by in ('agent', 'organization'));
-- What is left of the time limit on being ready, while it does not count.
alter table run_work add column queue_left interval;

-- Who takes part of a limit, for each claim under one.
create index run_work_taken on run_work (organization_id, agent_id)
  where state = 'leased' or (state = 'ready' and limited_by is not null);
-- Who was claimed before comes first, then the longest waiting.
create index run_work_limited on run_work (organization_id, agent_id, (attempt = 0), since) where state = 'limited';
create index run_work_limited_by_organization on run_work (organization_id)
  where state = 'limited' and limited_by = 'organization';

-- How many Runs may be executed at once, of each agent and of its organization; null: as many as there are slots. The live
-- version of the agent says it, whatever version a Run has.
create view concurrency_limits as
select id as agent_id,
       organization_id,
       -- Look-ups by key: as joins they were planned, on young tables, as scans.
       (select (manifest #>> '{concurrency,runs}')::integer from agent_versions
        where agent_id = agents.id and version = agents.live_version)         as agent_runs,
       (select max_runs from organizations where id = agents.organization_id) as organization_runs
from agents;
