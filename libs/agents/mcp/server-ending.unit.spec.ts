import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { explainEnd, LastLines, type Ending } from './server-ending.ts';

const closed = new McpError(ErrorCode.ConnectionClosed, 'Connection closed');
const running: Ending = { exit: null, broken: null, lastLines: [] };
const ended = (...lastLines: string[]): Ending => ({ ...running, exit: { status: 1, signal: null }, lastLines });
const STATUS = 'The program ended with exit status 1 before it answered.';
const LAST = 'Its last lines on standard error:';

it.each<[string, Ending, string]>([
  ['a status', ended(), STATUS],
  [
    'a signal',
    { ...running, exit: { status: null, signal: 'SIGKILL' } },
    'The program ended with signal SIGKILL before it answered.',
  ],
  ['nothing, for it runs', running, 'The program did not answer in time.'],
  [
    'a limit that it broke',
    { ...ended('a'), broken: new Error('Too much.') },
    `The program was ended before it answered. Too much. ${LAST} a`,
  ],
  ['several lines', ended('a', 'b'), `${STATUS} ${LAST} a | b`],
  ['colours and control characters', ended('\u001B[31mred\u001B[0m\tb\r'), `${STATUS} ${LAST} red b`],
  ['a secret where a line is cut', ended(`${'x'.repeat(295)}secret-one`), `${STATUS} ${LAST} ${'x'.repeat(295)}***`],
  ['a secret in colours', ended('sec\u001B[1mret-one'), `${STATUS} ${LAST} ***`],
  ['a long line', ended('x'.repeat(400)), `${STATUS} ${LAST} ${'x'.repeat(300)}`],
])('says of a program that left %s', (_what, ending, message) => {
  expect(explainEnd(closed, ending, ['secret-one'])).toMatchObject({ name: 'ServerEnded', message, cause: closed });
});

it.each([new McpError(ErrorCode.InvalidParams, 'no'), new Error('no'), 'no'])('leaves %s as it is', (error) => {
  expect(explainEnd(error, ended('a'), [])).toBe(error);
});

it.each<[string, string[], string[]]>([
  ['the last three', ['a', 'b', 'c', 'd'], ['b', 'c', 'd']],
  [
    'those of an error of Node that say something',
    ['  throw err;', '  ^', '', 'Error: no', '    at f (a:1)', "  code: 'E'", '}', '', 'Node.js v20.1.0'],
    ['  throw err;', 'Error: no', "  code: 'E'"],
  ],
  ['a text that begins with "at"', ['at least one key is needed'], ['at least one key is needed']],
])('keeps of the lines %s', (_what, lines, kept) => {
  const last = new LastLines();
  for (const line of lines) last.take(line);
  expect(last.lines).toEqual(kept);
  last.forget();
  expect(last.lines).toEqual([]);
});
