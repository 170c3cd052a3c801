-- Registers the API process $1 as alive for 10 s, by this server's clock. Returns the number of live API processes.
with beat as (
  insert into rate_limits (key, points, expires_at) values ('api:' || $1, 1, clock_timestamp() + interval '10 seconds')
  on conflict (key) do update set expires_at = excluded.expires_at
)
select 1 + count(*)::integer as alive
from rate_limits
where key between 'api:' and 'api;' and key <> 'api:' || $1 and expires_at > clock_timestamp()
