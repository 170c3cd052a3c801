import { fromLocalInput, targetOf, toLocalInput } from './target-page.ts';

test.each([
  ['agent.published', 'X', { of: 'Agent', to: '/agents/X' }],
  ['thread.terminated', 'X', { of: 'Thread', to: '/threads/X' }],
  ['run.confirmation_answered', 'X', { of: 'Run', to: '/runs/X' }],
  ['token.minted', 'X', { of: 'token' }],
  ['member.added', 'X', { of: 'person', to: '/people/X' }],
  ['organization.limited', 'X', { of: 'organization', to: '/organizations/X' }],
  ['queue.paused', null, { of: 'target' }],
  ['agent.created', null, { of: 'Agent' }],
])('%s of %s is about %j', (action, targetId, target) => {
  expect(targetOf({ action, targetId })).toEqual(target);
});

test('a time goes into an input to the minute and comes back as the same moment', () => {
  const local = toLocalInput('2026-07-01T12:34:56.789Z');
  expect(local).toMatch(/^2026-0[67]-\d\dT\d\d:\d4$/);
  expect(fromLocalInput(local)).toBe('2026-07-01T12:34:00.000Z');
});

test('what is no time is none', () => {
  expect([toLocalInput(''), toLocalInput('soon'), fromLocalInput(''), fromLocalInput('2026-13-01T00:00')]).toEqual([
    ...['', '', '', ''],
  ]);
});
