import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { inputsOf, type Append } from './append.ts';
import { absentThread } from './handle-commands.ts';

test('sends the inputs of append.sql in the order of its parameters', async () => {
  const text = await readFile(join(import.meta.dirname, 'append.sql'), 'utf8');
  const named = [...text.matchAll(/\$(\d+)::[\w[\]]+ as (\w+)/g)].map(([, place, name]) => ({
    place: Number(place),
    name,
  }));
  const thread = absentThread('thread');
  const append: Append = { before: thread, after: thread, events: [], work: { rows: [], gone: [] } };
  const sent = Object.keys(inputsOf(append, '[]', false)).map((name, i) => ({ place: i + 1, name }));
  expect(named).toEqual(sent);
  // The statement uses each parameter once, to name it.
  expect(text.match(/\$\d+/g)).toHaveLength(sent.length);
});
