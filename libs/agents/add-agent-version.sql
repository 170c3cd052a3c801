-- The next version of an agent becomes its live one: the live one is always the newest, going back is publishing an old
-- manifest again. So the number comes from the locked row, which two publishers see one after the other; `max(version)`
-- would come from the snapshot and be the same for both.
with agent as (
  select id, coalesce(live_version, 0) + 1 as version from agents where id = $1 and deleted_at is null for update
),
added as (
  insert into agent_versions (agent_id, version, manifest)
  select id, version, $2::jsonb from agent
  returning agent_id, version
)
update agents
set live_version = added.version,
    published    = published or $6,
    name         = $3,
    description  = $4,
    kind         = $5
from added
where agents.id = added.agent_id
returning added.version
