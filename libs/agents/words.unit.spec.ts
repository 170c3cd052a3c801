import fc from 'fast-check';
import { countWords, deltasOf } from './words.ts';

test('countWords counts what the expression for words finds, and deltasOf loses nothing', () => {
  const unit = fc.oneof(fc.constantFrom(' ', '\n', '\t', 'a', 'é', '\u00a0', '\u2003', '\ufeff', '😀'), fc.string());
  fc.assert(
    fc.property(fc.array(unit), (units) => {
      const text = units.join('');
      expect(countWords(text)).toBe(text.match(/\S+/g)?.length ?? 0);
      expect([...deltasOf(text)].join('')).toBe(text);
    }),
  );
});
