import type { Pool } from 'pg';
import { QueueControls } from './queue-controls.ts';

it.each([
  ['null while no worker is known', { slots: 0, own: 0, percent: 90 }, null],
  ['null without a cap', { slots: 32, own: 16, percent: 100 }, null],
  ['rounded down', { slots: 32, own: 0, percent: 90 }, 28],
  ['at least one', { slots: 1, own: 0, percent: 50 }, 1],
  ['a share of the own slots in a worker while no worker is known', { slots: 0, own: 16, percent: 90 }, 14],
  ['a share of all slots in a worker', { slots: 32, own: 16, percent: 90 }, 28],
])('returns the slots that one organization may hold: %s', async (_, { slots, own, percent }, expected) => {
  const pool = { query: async () => ({ rows: [{ slots }] }) } as unknown as Pool;
  const controls = new QueueControls(pool, 'queue', percent);
  controls.ownSlots = own;
  expect(await controls.slotsPerOrganization()).toBe(expected);
});
