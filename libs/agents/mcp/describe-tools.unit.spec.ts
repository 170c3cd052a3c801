import { createHash } from 'node:crypto';
import { describeTools } from './describe-tools.ts';

const server = { name: 'web', idempotent: [] };
const listed = (name: string, more = {}) => ({ name, inputSchema: { type: 'object' as const }, ...more });

describe('the tools that a server lists', () => {
  it('have no two the same name, whatever it calls them', () => {
    const hash = createHash('sha256').update('a.b').digest('hex').slice(0, 8);
    const { tools, leftOut } = describeTools(server, [listed('a_b'), listed('a.b'), listed(`a_b_${hash}`)]);
    expect(tools.map(({ name }) => name)).toEqual(['web__a_b', `web__a_b_${hash}`]);
    expect(leftOut).toEqual([`Another tool has the name web__a_b_${hash} already.`]);
  });

  it('have titles that can be stored', () => {
    const { tools } = describeTools(server, [listed('a', { title: `\0${'x'.repeat(253)}😀` })]);
    expect(tools[0]?.title).toBe(`${'x'.repeat(253)}\uFFFD`);
  });
});
