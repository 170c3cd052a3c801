-- Returns the tables and views of this release that the role cannot read, and `delete_stream` if it cannot execute it. All
-- rights are granted together (grant-rights.sql), so a role that can read a table has its other rights too. Tables that an
-- operator added are not listed, so that they do not keep processes from starting.
select name
from unnest(array[
  'agent_people', 'agent_versions', 'agents', 'audit_entries', 'bulk_action_runs', 'bulk_actions', 'chat_tokens',
  'concurrency_limits', 'deleted_streams', 'events', 'file_quotas', 'file_usage', 'files', 'idempotency_keys',
  'memberships', 'migrations', 'operator_sessions', 'organizations', 'people', 'policy_version', 'provider_circuits',
  'queue_controls', 'rate_limits', 'run_summaries', 'run_work', 'streams', 'thread_summaries', 'token_agents',
  'tokens', 'tool_server_warnings', 'unclaimed_blobs', 'workers'
]) as name
where not has_table_privilege(to_regclass(name), 'select')
union all
select 'delete_stream'
where not has_function_privilege(to_regproc('delete_stream'), 'execute')
order by name
