-- Waiting for a lock keeps everybody else waiting too: rather fail, and be tried again.
set local lock_timeout = '5s';

-- Appends wait while these are built, 2 s and more a million Runs. Where that is too long an operator has built them before
-- (docs/operators.md): hence `if not exists`.

-- Runs by when they ended, for what operators see. Only what is indexed keeps an update from being HOT: so the update by which
-- a Run ends writes into all indices of the table, and those before it, as ever, into none. `status` is in none of them, for
-- that would make it two updates a Run and more. Measured: 280 bytes of WAL more a Run.
create index if not exists run_summaries_by_end on run_summaries (completed_at) where completed_at is not null;

-- Of those that failed: when, and by what. Nothing else pays for them.
create index if not exists run_summaries_failed on run_summaries (completed_at, run_id) where error is not null;
create index if not exists run_summaries_by_error on run_summaries ((error ->> 'code'), run_id) where error is not null;
