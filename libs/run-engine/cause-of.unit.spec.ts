import { HarnessError } from '#agents';
import { causeOf } from './cause-of.ts';

const report = { source: 'provider', name: 'api.example', status: 503 } as const;

test.each<[string, unknown, object]>([
  ['the report', new HarnessError('provider_unavailable', { report, cause: new Error('x') }), report],
  [
    'the code if it says everything',
    new HarnessError('step_limit_reached'),
    { source: 'run', name: 'step_limit_reached' },
  ],
  [
    'the messages of all errors, and the innermost name that is not Error',
    new Error('a', { cause: new RangeError('b', { cause: new Error('c\0') }) }),
    { source: 'worker', name: 'w-1', type: 'RangeError', message: 'a b c' },
  ],
  [
    'the cause of a failure without a report',
    new HarnessError('storage_unavailable', { cause: new Error('disk full') }),
    { source: 'worker', name: 'w-1', type: 'Error', message: 'disk full' },
  ],
  ['that no error was thrown', 'text', { source: 'worker', name: 'w-1', type: 'Error', message: undefined }],
])('stores %s', (_, error, cause) => {
  expect(causeOf(error, 'w-1')).toEqual(cause);
});
