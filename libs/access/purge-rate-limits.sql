-- Deletes windows that have ended.
delete from rate_limits where expires_at <= clock_timestamp()
