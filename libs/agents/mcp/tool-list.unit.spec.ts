import { measureTurns } from '#testing';
import { ListTooLarge, MAX_LIST_BYTES, ToolList } from './tool-list.ts';

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

it('checks no more tools than it keeps, up to the first that does not fit', async () => {
  const tool = { name: 'a', inputSchema: { type: 'object', required: [] as unknown[] } };
  const icons = Array.from({ length: 24_000 }, () => ({}));
  const numbers = Array.from({ length: 24_000 }, () => 0);
  const readPage = (tools: unknown) => {
    const list = new ToolList();
    return list.read(async () => {
      list.take(1);
      return { tools };
    });
  };
  const noFit = { issues: expect.any(Array) as unknown[] };
  await measureTurns(async () => {
    await expect(readPage(icons)).rejects.toMatchObject(noFit);
    const { tools, isCut } = await readPage([...Array.from({ length: 1_001 }, () => tool), ...icons]);
    expect([tools.length, isCut]).toEqual([1_000, true]);
    expect(
      await readPage([{ ...tool, icons, _meta: icons, outputSchema: { type: 'object', required: icons } }]),
    ).toEqual({ tools: [tool], isCut: false });
    for (const more of [{ required: numbers }, { properties: { ...numbers } }]) {
      const inputSchema = { type: 'object', ...more };
      await expect(readPage([{ ...tool, inputSchema }])).rejects.toMatchObject(noFit);
    }
  });
  await expect(readPage('none')).rejects.toMatchObject({ issues: [{ path: ['tools'] }] });
});
