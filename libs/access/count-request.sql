-- Counts a request of a key in its window of $3 seconds, or in a new one if that has ended. Returns the count and the remaining
-- milliseconds. Uses this server's clock, because the clocks of the processes may differ.
insert into rate_limits as counted (key, points, expires_at)
values ($1, $2, clock_timestamp() + $3::integer * interval '1 second')
on conflict (key) do update
set points     = case when counted.expires_at <= clock_timestamp() then excluded.points
                      else counted.points + excluded.points end,
    expires_at = case when counted.expires_at <= clock_timestamp() then excluded.expires_at else counted.expires_at end
returning points, extract(epoch from expires_at - clock_timestamp())::float8 * 1000 as "leftMs"
