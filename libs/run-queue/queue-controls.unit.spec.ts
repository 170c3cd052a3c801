import type { Pool } from 'pg';
import { QueueControls } from './queue-controls.ts';

it.each([
  ['no worker is known', { slots: 0, own: 0, percent: 90 }, null],
  ['there is no cap', { slots: 32, own: 16, percent: 100 }, null],
  ['rounded down', { slots: 32, own: 0, percent: 90 }, 28],
  ['at least one', { slots: 1, own: 0, percent: 50 }, 1],
  ['of its own slots in a worker while no worker is known', { slots: 0, own: 16, percent: 90 }, 14],
  ['of all slots in a worker', { slots: 32, own: 16, percent: 90 }, 28],
])('knows how many slots one organization may hold: %s', async (_, { slots, own, percent }, expected) => {
  const pool = { query: async () => ({ rows: [{ slots }] }) } as unknown as Pool;
  const controls = new QueueControls(pool, 'queue', percent);
  controls.ownSlots = own;
  expect(await controls.slotsPerOrganization()).toBe(expected);
});
