import { causeMessage, causeWord, summarizeCause, type FailureCause } from './failure-cause.ts';

const provider = { source: 'provider', name: 'api.example' } as const;
const server = { source: 'tool_server', name: 'files' } as const;
const worker = { source: 'worker', name: 'w-1' } as const;

test.each<[FailureCause, string]>([
  [{ ...provider, status: 503, code: 'overloaded', message: 'x' }, 'HTTP 503 from api.example'],
  [{ ...provider, type: 'TypeError', code: 'ECONNREFUSED' }, 'provider api.example: ECONNREFUSED'],
  [{ ...provider, type: 'ProviderSilent' }, 'provider api.example: sent nothing in time'],
  [provider, 'provider api.example: no response'],
  [{ ...server, exitCode: 0, code: '-32000' }, 'tool server files: exit status 0'],
  [{ ...server, exitCode: 1, signal: 'SIGKILL' }, 'tool server files: signal SIGKILL'],
  [{ ...server, status: 503, code: 'x' }, 'tool server files: HTTP 503'],
  [{ ...server, code: '-32603' }, 'tool server files: JSON-RPC error -32603'],
  [{ ...server, code: 'ENOENT', type: 'lost' }, 'tool server files: ENOENT'],
  [{ ...server, type: 'timeout' }, 'tool server files: timed out'],
  [server, 'tool server files: no response'],
  [{ source: 'run', name: 'step_limit_reached' }, 'step_limit_reached'],
  [{ ...worker, step: 'model step 2' }, 'the worker was lost'],
  [{ ...worker, type: 'RangeError', message: 'x' }, 'internal error RangeError in the worker'],
])('summarizes %j', (cause, summary) => {
  expect(summarizeCause(cause)).toBe(summary);
});

test('cuts texts, and removes what PostgreSQL does not store', () => {
  expect(causeMessage(`a\0${'x'.repeat(600)}`)).toBe(`a${'x'.repeat(499)}`);
  expect(causeWord(`${'x'.repeat(99)}😀`)).toBe('x'.repeat(99));
});
