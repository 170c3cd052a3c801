import { steadyRows } from './steady-rows.ts';

const row = (id: string, status = 'old') => ({ id, status });

test('the rows of the list itself are shown as they are', () => {
  const rows = [row('3'), row('1')];
  expect(steadyRows(rows, rows)).toEqual({ shown: rows, gone: new Set(), fresh: 0 });
});

test('held rows stay in their places, are updated, and are followed by older ones', () => {
  const held = [row('5'), row('4'), row('3')];
  const list = [row('7'), row('6'), row('5', 'new'), row('3'), row('2')];
  expect(steadyRows(held, list)).toEqual({
    shown: [row('5', 'new'), row('4'), row('3'), row('2')],
    gone: new Set(['4']),
    fresh: 2,
  });
});

test('a held row that new ones pushed to the next page has not left the list', () => {
  const held = [row('5'), row('4')];
  const list = [row('6'), row('5')];
  expect(steadyRows(held, list, true)).toEqual({ shown: held, gone: new Set(), fresh: 1 });
  expect(steadyRows(held, list, false)).toEqual({ shown: held, gone: new Set(['4']), fresh: 1 });
});

test('an empty list that is held shows no new row', () => {
  expect(steadyRows([], [row('1')])).toEqual({ shown: [], gone: new Set(), fresh: 1 });
});

test('rows with one place are told apart by their ids: if the last one leaves, the others stay themselves', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((id) => ({ id, place: 'run' }));
  expect(steadyRows([a!, b!, c!], [a!, b!])).toEqual({ shown: [a, b, c], gone: new Set(['c']), fresh: 0 });
  const next = { id: 'd', place: 'run' };
  expect(steadyRows([a!], [next])).toEqual({ shown: [a], gone: new Set(['a']), fresh: 1 });
});
