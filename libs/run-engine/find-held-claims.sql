-- Which of a worker's claims still hold, by their Runs and attempts. Reads only. Who has a holder is leased: saying so would let
-- it be planned as a scan of all that are.
select run_id as "runId", attempt from run_work where holder = $1
