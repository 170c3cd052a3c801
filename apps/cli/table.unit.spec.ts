import { renderFields, renderTable, type Column } from './table.ts';

interface Row {
  id: string;
  name: string;
  title: string | null;
}

const columns: Column<Row>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'title', value: ({ title }) => title, cut: true },
];
const row = { id: '01JD0000000000000000000000', name: 'n'.repeat(40), title: 't'.repeat(12) };

test('is as wide as what it shows, a line a row, without trailing spaces', () => {
  expect(renderTable(columns, [row, { ...row, title: null }]).text).toBe(
    [
      `ID${' '.repeat(26)}NAME${' '.repeat(38)}TITLE`,
      `${row.id}  ${row.name}  ${row.title}`,
      `${row.id}  ${row.name}  -`,
    ].join('\n'),
  );
});

test('is cut to the terminal’s width where it may be, the widest column first, and ids never', () => {
  const [, line = ''] = renderTable(columns, [row], 60).text.split('\n');
  expect(line.length).toBeLessThanOrEqual(60);
  expect(line).toContain(row.id);
  expect(line).toMatch(/ n{10,}… +t{12}$/);
  const [, narrow = ''] = renderTable(columns, [row], 10).text.split('\n');
  expect(narrow).toMatch(new RegExp(`^${row.id}  n{11}…  t{12}$`));
});

test('leaves out wide columns that do not fit, the last one first, and names them', () => {
  const wide = [
    { ...columns[0]!, head: 'thread', wide: true },
    { ...columns[2]!, head: 'note', wide: true },
  ];
  const render = (width: number) => renderTable([...columns, ...wide], [row], width);
  expect(render(200).leftOut).toEqual([]);
  expect(render(90)).toMatchObject({ leftOut: ['note'], text: expect.stringContaining('THREAD') as string });
  const narrow = render(80);
  expect(narrow.leftOut).toEqual(['note', 'thread']);
  expect(narrow.text.split('\n')[1]?.length).toBeLessThanOrEqual(80);
});

test('counts wide characters as wide as they are', () => {
  const lines = renderTable(columns, [
    { ...row, name: '漢字', title: 'x' },
    { ...row, name: 'abcd', title: 'x' },
  ]).text.split('\n');
  expect(lines[1]).toBe(`${row.id}  漢字  x`);
  expect(lines[2]).toBe(`${row.id}  abcd  x`);
});

test('fields: names and values of one record', () => {
  const fields = [
    ['id', 'x'],
    ['published', true],
    ['agents', []],
    ['last used', null],
  ] as const;
  expect(renderFields(fields)).toBe('id         x\npublished  yes\nagents     -\nlast used  -');
});
