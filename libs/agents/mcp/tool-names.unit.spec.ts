import { toolNames } from './tool-names.ts';

const namesOf = (...tools: string[]) => Object.fromEntries(toolNames('web', tools));

describe('the names of tools', () => {
  it('are those of the server after its own name', () => {
    expect(namesOf('get', 'Get-it_2')).toEqual({ get: 'web__get', 'Get-it_2': 'web__Get-it_2' });
  });

  it('have nothing that providers do not take', () => {
    expect(namesOf('files.read/one é')).toEqual({ 'files.read/one é': 'web__files_read_one__' });
  });

  it('differ where they were changed to the same, whatever their order', () => {
    const names = namesOf('a.b', 'a b', 'a_b');
    expect(names['a_b']).toBe('web__a_b');
    expect(names['a.b']).toMatch(/^web__a_b_[0-9a-f]{8}$/);
    expect(new Set(Object.values(names)).size).toBe(3);
    expect(namesOf('a_b', 'a b', 'a.b')).toEqual(names);
  });

  it('are cut where they are too long, and still differ', () => {
    const [one = '', other = ''] = Object.values(namesOf(`${'n'.repeat(80)}1`, `${'n'.repeat(80)}2`));
    expect(one).toMatch(/^web__n{50}_[0-9a-f]{8}$/);
    expect(one).toHaveLength(64);
    expect(other).not.toBe(one);
  });
});
