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

  test.each([
    [{ name: '  ' }],
    [{ personId: '' }],
    [{ kind: 'service', organizationId: '' } as const],
    [{ kind: 'service', agentIds: [] as string[] } as const],
  ])('is nothing yet with %j', (missing) => {
    expect(newTokenOf({ ...form, ...missing }, NOW)).toBeNull();
  });
});
