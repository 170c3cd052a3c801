-- At most once a minute, whichever pods see the session; its token is used as well.
-- A session that was not used for an hour has ended (find-session.sql): a write that comes late does not revive it.
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
