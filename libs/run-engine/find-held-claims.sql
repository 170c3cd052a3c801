-- The claims of a worker that still hold, by Run and attempt. Rows with a holder are leased. A condition on the state could make
-- the planner scan all leased rows.
select run_id as "runId", attempt from run_work where holder = $1
