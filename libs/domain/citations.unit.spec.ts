import fc from 'fast-check';
import { createCitationFilter, removeCitations, toFinalOutput } from './citations.ts';
import { measureTurns, nightTest } from '#testing';
import { randomRuns } from './random.testing.ts';

const OPENING = '\uE200cite\uE202';
const cite = (inner: string) => `${OPENING}${inner}\uE201`;

function filtered(pieces: string[]): string {
  const filter = createCitationFilter();
  return pieces.map((piece) => filter.push(piece)).join('') + filter.end();
}

const shortPart = fc.constantFrom(
  'a',
  'bc',
  '\uE200',
  'cite',
  'ci',
  'te',
  '\uE202',
  '\uE201',
  OPENING,
  cite('x'),
  '😀',
);
// The long texts just fit in an envelope and just do not.
const part = fc.oneof({ arbitrary: shortPart, weight: 9 }, fc.constantFrom('x'.repeat(4_095), 'x'.repeat(4_097)));

/** Removes citations by their definition: one character after the other, with a text for each open start. */
function removedSlowly(text: string): { text: string; count: number } {
  let [open, shown, count]: [string[], string, number] = [[], '', 0];
  const giveUp = (): void => {
    shown += open.join('');
    open = [];
  };
  for (const unit of text.split('')) {
    if (unit === '\uE201') {
      const isEnvelope = open.at(-1)?.startsWith(OPENING) === true;
      if (isEnvelope) open.pop();
      else giveUp();
      if (isEnvelope) count += 1;
      else shown += unit;
      continue;
    }
    if (unit === '\uE200') open.push(unit);
    else if (open.length > 0) open.push(open.pop() + unit);
    else shown += unit;
    const last = open.at(-1) ?? '';
    if (!OPENING.startsWith(last) && !last.startsWith(OPENING)) giveUp();
    while (open.join('').length > 4_102) shown += open.shift();
  }
  giveUp();
  return { text: shown, count };
}

describe('removeCitations', () => {
  test('removes the citations of random texts by their definition', () => {
    const texts = fc.array(part, { maxLength: 30 }).map((parts) => parts.join(''));
    fc.assert(
      fc.property(texts, (text) => expect(removeCitations(text)).toEqual(removedSlowly(text))),
      randomRuns(500),
    );
  });

  nightTest('takes a short turn for 1 MiB of any content', async () => {
    for (const hostile of ['\uE200', '\uE201', OPENING, `${OPENING}\uE200`, cite('x'), `\uE200cite${cite('')}`]) {
      const text = hostile.repeat((1024 * 1024) / hostile.length);
      await measureTurns(() => removeCitations(text), { maxMs: 80 });
    }
  });

  test.each([
    ['plain', 'plain', 0],
    ['', '', 0],
    [`a${cite('turn0search1')}b${cite('x\uE202y')}`, 'ab', 2],
    [`a${cite('line\nbreak 😀')} b`, 'a b', 1],
    [cite(''), '', 1],
    [`${OPENING} never closed`, `${OPENING} never closed`, 0],
    [`${OPENING} open ${cite('closed')}`, `${OPENING} open `, 1],
    [`closed before \uE201${cite('x')}`, 'closed before \uE201', 1],
    ['\uE200other\uE202x\uE201', '\uE200other\uE202x\uE201', 0],
    ['\uE200cite\uE201', '\uE200cite\uE201', 0],
    ['\uE200CITE\uE202x\uE201', '\uE200CITE\uE202x\uE201', 0],
    ['cite\uE202x\uE201', 'cite\uE202x\uE201', 0],
    [cite(`x${cite('y')}z`), '', 2],
    [`\uE200ci${cite('y')}te\uE202z\uE201`, '', 2],
    [cite(`x\uE200y${cite('z')}`), cite('x\uE200y'), 1],
    [cite('x'.repeat(4_096)), '', 1],
    [cite('x'.repeat(4_097)), cite('x'.repeat(4_097)), 0],
    [`${OPENING}${'x'.repeat(5_000)}${cite('y')}`, `${OPENING}${'x'.repeat(5_000)}`, 1],
  ])('changes %j to %j', (text, expected, count) => {
    expect(removeCitations(text)).toEqual({ text: expected, count });
  });

  test('leaves no envelope, and does not change text without one', () => {
    fc.assert(
      fc.property(fc.array(shortPart, { maxLength: 30 }), (parts) => {
        const once = removeCitations(parts.join(''));
        expect(once.text).not.toMatch(/\uE200cite\uE202[^\uE200\uE201]*\uE201/);
        expect(removeCitations(once.text)).toEqual({ text: once.text, count: 0 });
      }),
      randomRuns(1_000),
    );
  });
});

test('a final output counts the removed citations, and always has an array of warnings', () => {
  expect(toFinalOutput('hi')).toEqual({ text: 'hi', warnings: [] });
  expect(toFinalOutput(`hi ${OPENING}`)).toEqual({ text: `hi ${OPENING}`, warnings: [] });
  expect(toFinalOutput(`hi${cite('a')}${cite('b')}`)).toEqual({
    text: 'hi',
    warnings: [{ code: 'unresolved_provider_citation', count: 2 }],
  });
});

describe('createCitationFilter', () => {
  test('returns the text without citations for every cut in three', () => {
    const text = `a${cite('1')}\uE200ci${cite('2')}te\uE202\uE201b${OPENING}c`;
    const expected = removeCitations(text).text;
    expect(expected).toBe(`ab${OPENING}c`);
    expect(filtered([...text])).toBe(expected);
    for (let i = 0; i <= text.length; i++) {
      for (let j = i; j <= text.length; j++) {
        expect(filtered([text.slice(0, i), text.slice(i, j), text.slice(j)])).toBe(expected);
      }
    }
  });

  test('returns random texts without citations for random cuts', () => {
    const cutText = fc
      .array(part, { maxLength: 20 })
      .map((parts) => parts.join(''))
      .chain((text) => fc.tuple(fc.constant(text), fc.array(fc.nat(text.length), { maxLength: 20 })));
    fc.assert(
      fc.property(cutText, ([text, cuts]) => {
        const places = [0, ...cuts.sort((a, b) => a - b), text.length];
        const pieces = places.slice(1).map((end, i) => text.slice(places[i], end));
        expect(filtered(pieces)).toBe(removeCitations(text).text);
      }),
      randomRuns(2_000),
    );
  });

  test('holds back only text that can become an envelope', () => {
    const filter = createCitationFilter();
    expect(filter.push('text \uE200ci')).toBe('text ');
    expect(filter.push('rcle')).toBe('\uE200circle');
    expect(filter.push(`more ${OPENING}turn0`)).toBe('more ');
    expect(filter.push('search1\uE201 text')).toBe(' text');
    expect(filter.end()).toBe('');
  });

  test('returns an unterminated envelope once at the end', () => {
    const filter = createCitationFilter();
    expect(filter.push(`text${OPENING}turn0`)).toBe('text');
    expect(filter.end()).toBe(`${OPENING}turn0`);
    expect(filter.end()).toBe('');
  });

  test('holds back at most 4,102 characters at any depth of nesting', () => {
    for (const opening of [OPENING, '\uE200', `${OPENING}x`.repeat(300)]) {
      const filter = createCitationFilter();
      let given = 0;
      let shown = 0;
      for (const piece of [opening, ...Array.from({ length: 200 }, () => `x${opening}`), 'x'.repeat(9_000)]) {
        given += piece.length;
        shown += filter.push(piece).length;
        expect(given - shown).toBeLessThanOrEqual(4_102);
      }
    }
  });
});
