import { EMPTY_FORM, newTokenOf } from './new-token.ts';

const NOW = Date.parse('2026-11-22T10:00:00Z');
const form = { ...EMPTY_FORM, name: ' laptop ', personId: 'P', organizationId: 'O', agentIds: ['A', 'B'] };

describe('newTokenOf', () => {
  test('sends what the kind needs, and nothing of the others', () => {
    const common = { name: 'laptop', expiresAt: '2027-02-20T10:00:00.000Z' };
    expect(newTokenOf(form, NOW)).toEqual({ kind: 'person', personId: 'P', ...common });
    expect(newTokenOf({ ...form, kind: 'operator' }, NOW)).toEqual({ kind: 'operator', ...common });
    expect(newTokenOf({ ...form, kind: 'service' }, NOW)).toEqual({
      ...{ kind: 'service', organizationId: 'O', agentIds: ['A', 'B'], allowAttribution: false },
      ...common,
    });
    expect(newTokenOf({ ...form, days: null }, NOW)).toMatchObject({ expiresAt: null });
  });

  test('sends the limits of the form; an operator has no stream limit', () => {
    const limits = { requestsPerMinute: 20_000, maxStreams: 500 };
    for (const kind of ['person', 'service'] as const) {
      expect(newTokenOf({ ...form, kind, ...limits }, NOW)).toMatchObject(limits);
    }
    const operator = newTokenOf({ ...form, kind: 'operator', ...limits }, NOW);
    expect(operator).toMatchObject({ requestsPerMinute: 20_000 });
    expect(operator).not.toHaveProperty('maxStreams');
  });

  test.each([
    [{ name: '  ' }],
    [{ personId: '' }],
    [{ kind: 'service', organizationId: '' } as const],
    [{ kind: 'service', agentIds: [] as string[] } as const],
  ])('is nothing yet with %j', (missing) => {
    expect(newTokenOf({ ...form, ...missing }, NOW)).toBeNull();
  });
});
