-- A session by the hash of its id, with the name of its operator. It ends after its lifetime, after an hour without use, and with
-- the secret that opened it. `leftMs` is by this server's clock.
select s.token_id as "tokenId",
       t.name     as "tokenName",
       t.requests_per_minute as "requestsPerMinute",
       least(s.expires_at, t.expires_at, old.until) as "expiresAt",
       extract(epoch from least(s.expires_at, s.last_used_at + interval '1 hour', t.expires_at, old.until)
         - clock_timestamp())::float8 * 1000 as "leftMs"
from operator_sessions s
join tokens t on t.id = s.token_id and (t.hash = s.token_hash or t.old_hash = s.token_hash)
cross join lateral (select case when t.hash <> s.token_hash then t.old_hash_until end as until) old
where s.hash = $1 and t.kind = 'operator' and t.revoked_at is null
