-- Returns the warnings of an agent's tool servers.
select tool_server as "toolServer", warnings
from tool_server_warnings
where agent_id = $1
order by tool_server
