import { warningsOf } from './send-warnings.ts';

it('warns of events without effect and of waiting messages, with their index in the batch', () => {
  const outcome = { runId: 'R1', waitsBehind: 0, hadEnded: false };
  const outcomes = [
    outcome,
    { ...outcome, hadEnded: true },
    { ...outcome, waitsBehind: 1 },
    { ...outcome, waitsBehind: 2 },
  ];
  expect(warningsOf(outcomes)).toEqual([
    { code: 'run_already_ended', message: 'body.events.1: The Run R1 had already ended.' },
    { code: 'message_queued', message: 'body.events.2: The message waits behind 1 Run of the Thread.' },
    { code: 'message_queued', message: 'body.events.3: The message waits behind 2 Runs of the Thread.' },
  ]);
});
