import { BOUNDS } from '#domain';
import { measureTurns } from '#testing';
import { NoToolList, ListTooLarge, ToolList } from './tool-list.ts';

const MAX_LIST_BYTES = BOUNDS.toolServers.list.value;

const page = (name: string, nextCursor?: string) => ({
  tools: [{ name, inputSchema: { type: 'object' as const } }],
  nextCursor,
});

/** Reads pages of so many bytes. */
async function read(sizes: number[]) {
  const list = new ToolList();
  const found = await list.read(async (cursor) => {
    const at = Number(cursor ?? 0);
    list.take(sizes[at]!);
    return page(`tool_${at}`, at + 1 < sizes.length ? String(at + 1) : undefined);
  });
  return { names: found.tools.map(({ name }) => name), isCut: found.isCut, bytes: list.bytes };
}

it('keeps pages up to its bound, and not the one that goes beyond', async () => {
  expect(await read([1_000, 1_000])).toEqual({ names: ['tool_0', 'tool_1'], isCut: false, bytes: 2_000 });
  const cut = await read([1_000, MAX_LIST_BYTES, 1_000]);
  expect(cut).toEqual({ names: ['tool_0'], isCut: true, bytes: MAX_LIST_BYTES });
});

it('refuses a first page beyond its bound', async () => {
  await expect(read([MAX_LIST_BYTES + 1])).rejects.toThrow(ListTooLarge);
});

it('refuses a page whose bytes were not counted, because it came in another answer', async () => {
  await expect(new ToolList().read(async () => page('a'))).rejects.toThrow(ListTooLarge);
});

/** Reads pages, one after the other. */
function readPage(...results: Record<string, unknown>[]) {
  const list = new ToolList();
  return list.read(async () => {
    list.take(1);
    return results.shift()!;
  });
}

const tool = { name: 'a', inputSchema: { type: 'object', required: [] as unknown[] } };

it('reads at most 1,000 entries of any content, in short turns', async () => {
  const icons = Array.from({ length: 24_000 }, () => ({}));
  const numbers = Array.from({ length: 24_000 }, () => 0);
  await measureTurns(async () => {
    expect(await readPage({ tools: icons })).toMatchObject({ tools: [], isCut: true });
    const long = await readPage({ tools: [...Array.from({ length: 1_001 }, () => tool), ...icons] });
    expect([long.tools.length, long.leftOut, long.isCut]).toEqual([1_000, [], true]);
    const unused = { icons, _meta: icons, outputSchema: { type: 'object', required: icons } };
    expect(await readPage({ tools: [{ ...tool, ...unused }] })).toEqual({ tools: [tool], leftOut: [], isCut: false });
    for (const more of [{ required: numbers }, { properties: { ...numbers } }]) {
      const { tools, leftOut } = await readPage({ tools: [{ ...tool, inputSchema: { type: 'object', ...more } }] });
      expect([tools, leftOut.length]).toEqual([[], 1]);
    }
  });
});

it.each(['none', { a: tool }, undefined, 5])('refuses %j as a list of tools', async (tools) => {
  await expect(readPage({ tools })).rejects.toThrow(NoToolList);
});

it.each([null, '', 5])('reads a page with the cursor %j as the last one', async (nextCursor) => {
  expect(await readPage({ tools: [tool], nextCursor })).toEqual({ tools: [tool], leftOut: [], isCut: false });
});

it('takes null as an empty list', async () => {
  expect(await readPage({ tools: null })).toEqual({ tools: [], leftOut: [], isCut: false });
});

it.each<[unknown, string[]]>([
  [null, []],
  [undefined, []],
  [{}, ['Page 2 of the list of tools has no list, and is left out.']],
  ['none', ['Page 2 of the list of tools has no list, and is left out.']],
])('keeps the tools of the other pages when a later page has %j', async (tools, leftOut) => {
  const last = { tools: [{ ...tool, name: 'b' }] };
  const read = await readPage({ tools: [tool], nextCursor: '2' }, { tools, nextCursor: '3' }, last);
  expect(read).toEqual({ tools: [tool, ...last.tools], leftOut, isCut: false });
});
