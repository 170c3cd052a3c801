-- Returns a token with the facts that the policy needs. Finds it by the hash of its secret ($1), of its previous secret during the
-- grace period, or by its id ($2).
-- `leftMs` is by this server's clock, because the clocks of the processes may differ.
select t.id,
       t.kind,
       t.name,
       t.organization_id   as "organizationId",
       t.person_id         as "personId",
       t.allow_attribution as "allowAttribution",
       t.requests_per_minute as "requestsPerMinute",
       t.max_streams       as "maxStreams",
       extract(epoch from least(t.expires_at, case when t.hash <> $1 then t.old_hash_until end) - clock_timestamp())::float8
         * 1000            as "leftMs",
       t.revoked_at is not null as "isRevoked",
       array(select m.organization_id from memberships m where m.person_id = t.person_id) as "memberships",
       array(select p.agent_id from agent_people p where p.person_id = t.person_id)       as "invitations",
       array(select a.agent_id from token_agents a where a.token_id = t.id)               as "tokenAgents"
from tokens t
where t.hash = $1 or t.old_hash = $1 or t.id = $2
