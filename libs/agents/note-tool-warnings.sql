-- Replaces the warnings of an agent's tool server. Writes nothing if they are the same.
with cleared as (
  delete from tool_server_warnings where agent_id = $1 and tool_server = $2 and cardinality($3::text[]) = 0
)
insert into tool_server_warnings as old (agent_id, tool_server, warnings)
select $1, $2, $3::text[]
where cardinality($3::text[]) > 0
on conflict (agent_id, tool_server) do update set warnings = excluded.warnings, noted_at = now()
where old.warnings is distinct from excluded.warnings
