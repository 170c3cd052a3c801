-- One version of an agent, which never changes.
select manifest from agent_versions where agent_id = $1 and version = $2
