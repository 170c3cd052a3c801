-- Records the use of a session and its token, at most once a minute for all processes.
-- A late write does not revive a session that ended after an hour without use (find-session.sql).
with touched as (
  update operator_sessions set last_used_at = now()
  where hash = $1
    and last_used_at < now() - interval '1 minute'
    and last_used_at > now() - interval '1 hour'
  returning token_id
)
update tokens set last_used_at = now()
from touched
where id = token_id and (last_used_at is null or last_used_at < now() - interval '1 minute')
