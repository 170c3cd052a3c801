/** How long the answer of a statement is waited for, as `pg` takes it. */
export function limit(timeoutMs: number | undefined): { query_timeout?: number } {
  return timeoutMs === undefined ? {} : { query_timeout: timeoutMs };
}
