-- Forgets windows that are over.
delete from rate_limits where expires_at <= clock_timestamp()
