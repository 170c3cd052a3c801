import { createHash } from 'node:crypto';
import { describeTools } from './describe-tools.ts';

const server = { name: 'web', idempotent: [] };
const listed = (name: string, more = {}) => ({ name, inputSchema: { type: 'object' as const }, ...more });

describe('the tools that a server lists', () => {
  it('have no two the same name, whatever it calls them', async () => {
    const hash = createHash('sha256').update('a.b').digest('hex').slice(0, 8);
    const { tools, leftOut } = await describeTools(server, [listed('a_b'), listed('a.b'), listed(`a_b_${hash}`)]);
    expect(tools.map(({ name }) => name)).toEqual(['web__a_b', `web__a_b_${hash}`]);
    expect(leftOut).toEqual([`Another tool has the name web__a_b_${hash} already.`]);
  });

  it('include only the first of two tools with one name', async () => {
    const { tools, leftOut } = await describeTools(server, [listed('a', { title: 'First' }), listed('a'), listed('b')]);
    expect(tools.map(({ title }) => title)).toEqual(['First', 'b']);
    expect(leftOut).toEqual(['The tool "a" is listed more than once; the first is kept.']);
  });

  it.each([
    ['the title', { title: 'Own', annotations: { title: 'Annotated' } }, 'Own'],
    ['the annotated title without a title', { annotations: { title: 'Annotated' } }, 'Annotated'],
    ['the annotated title if the title is empty', { title: '', annotations: { title: 'Annotated' } }, 'Annotated'],
    ['the name without any title', { annotations: { readOnlyHint: true } }, 'a.b'],
  ])('are shown to people with %s', async (_what, more, title) => {
    expect((await describeTools(server, [listed('a.b', more)])).tools[0]?.title).toBe(title);
  });

  it.each([
    [{ destructiveHint: true }, true],
    [{ destructiveHint: true, readOnlyHint: true }, false],
    [{}, false],
  ])('are destructive only if the server says so: %j', async (annotations, destructive) => {
    expect((await describeTools(server, [listed('a', { annotations })])).tools[0]?.destructive).toBe(destructive);
  });

  it('have titles that can be stored', async () => {
    const { tools } = await describeTools(server, [listed('a', { title: `\0${'x'.repeat(253)}😀` })]);
    expect(tools[0]?.title).toBe(`${'x'.repeat(253)}\uFFFD`);
  });
});
