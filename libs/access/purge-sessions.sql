-- Deletes sessions that have ended.
delete from operator_sessions
where expires_at <= clock_timestamp() or last_used_at <= clock_timestamp() - interval '1 hour'
