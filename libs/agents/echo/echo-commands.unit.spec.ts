import { echoDurationMs, parseEchoMessage } from './echo-commands.ts';

describe('parseEchoMessage', () => {
  it.each([
    ['hello', 'hello', []],
    ['  two  spaces\nand a line ', '  two  spaces\nand a line ', []],
    ['/unknown word', '/unknown word', []],
    ['a/tool', 'a/tool', []],
    ['hello /tool', 'hello', [['/tool', null]]],
    ['/tool hello', 'hello', [['/tool', null]]],
    ['say /pause 50 it', 'say it', [['/pause', '50']]],
    ['say /pause it', 'say it', [['/pause', null]]],
    ['/crash always', '/crash always', [['/crash', 'always']]],
    ['/crash never', 'never', [['/crash', null]]],
    [
      '/confirm 3 /think 2s x',
      'x',
      [
        ['/confirm', '3'],
        ['/think', '2s'],
      ],
    ],
  ])('reads %j as %j', (message, text, commands) => {
    const request = parseEchoMessage(message);
    expect(request.text).toBe(text);
    expect([...request.commands]).toEqual(commands);
  });

  it('leaves a command that is switched off as text', () => {
    expect(parseEchoMessage('x /crash', ['/crash'])).toEqual({ text: 'x /crash', commands: new Map() });
  });
});

it.each([
  ['50', 50],
  ['50ms', 50],
  ['2s', 2_000],
  [null, 7],
  [undefined, 7],
])('a duration of %j is %d ms', (argument, ms) => {
  expect(echoDurationMs(argument, 7)).toBe(ms);
});
