import { shortCallIds } from './call-ids.ts';

it('derives a different short id from each stored id, independent of their order', () => {
  const ids = Array.from({ length: 10_000 }, (_, i) => `01ARZ3NDEKTSV4RRFFQ6${String(i).padStart(6, '0')}`);
  const short = shortCallIds(ids);
  expect(new Set(short.values()).size).toBe(ids.length);
  expect([...short.values()].filter((id) => !/^[a-zA-Z0-9]{9}$/.test(id))).toEqual([]);
  expect(shortCallIds(ids.toReversed()).get(ids[5]!)).toBe(short.get(ids[5]!));
});

it('gives the later of two ids with the same digest another one', () => {
  const digest = (text: string) => (text.length < 3 ? 'aaaaaaaaa' : text.slice(-1).repeat(9));
  expect([...shortCallIds(['x', 'y', 'x', 'z'], digest)]).toEqual([
    ['x', 'aaaaaaaaa'],
    ['y', '111111111'],
    ['z', '222222222'],
  ]);
});
