-- Records the use of a token, at most once a minute for all processes.
update tokens set last_used_at = now()
where id = $1 and (last_used_at is null or last_used_at < now() - interval '1 minute')
