import fc from 'fast-check';
import { parseDocument, visit } from 'yaml';
import { formatProblem, MAX_MANIFEST_BYTES, parseManifests } from './manifest-file.ts';

const CANARY = 'sk-canary-4711';
const SMALLEST = 'name: echo\nharness: {name: echo}\n';

const told = (text: string, file = 'agents/echo.yaml') => parseManifests(text, file).problems.map(formatProblem);
const read = (text: string) => {
  const { manifests, problems } = parseManifests(text, 'agents/echo.yaml');
  expect(problems).toEqual([]);
  return manifests;
};

const DURATION = 'must be a number of milliseconds, or a whole number with a unit: 500ms, 30s, 10m, 1h, 7d';
const REFERENCE = 'must be {env: NAME} or {file: /path}, never the secret itself';
const URL = 'must be an http or https URL without a user name and password';
const NAME = 'must be 1 to 40 characters: a to z, 0 to 9 and hyphens';
const TRANSPORT = 'must have either command (stdio) or url (HTTP)';

describe('problems with what a field holds', () => {
  // What is wrong stands behind the two lines of the smallest manifest: from line 3.
  it.each<[wrong: string, ...problems: string[]]>([
    ['nam: x', '3:1 nam: is not a known field'],
    ['"odd key\\n": x', '3:1 "odd key\\n": is not a known field'],
    ['description: 5', '3:14 description: must be text'],
    ['description:', '3:13 description: must be text'],
    ['kind: dog', '3:7 kind: must be pet or cattle'],
    ['instructions: "a\\0b"', '3:15 instructions: must not contain NUL or lone surrogates'],
    ['instructions: "\\ud800"', '3:15 instructions: must not contain NUL or lone surrogates'],
    [`instructions: ${'x'.repeat(100_001)}`, '3:15 instructions: must have at most 100000 characters'],
    ['tools:\n  - pattern: a\n    policy: maybe', '5:13 tools.0.policy: must be allow, ask or deny'],
    ['tools:\n  - policy: ask', '4:5 tools.0.pattern: is missing'],
    ['tools:\n  - {policy: ask, pattern: a, x: 1}', '4:31 tools.0.x: is not a known field'],
    ['tools: {}', '3:8 tools: must be a list'],
    ['limits: {workMs: 10x}', `3:18 limits.workMs: ${DURATION}`],
    ['limits: {workMs: true}', `3:18 limits.workMs: ${DURATION}`],
    ['limits: {workMs: 8d}', '3:18 limits.workMs: must be at most 7d'],
    ['limits: {workMs: 0}', '3:18 limits.workMs: must be at least 1ms'],
    ['limits: {workMs: 1.5}', '3:18 limits.workMs: must be a whole number'],
    ['limits: {maxCost: 2}', '3:19 limits.maxCost: needs model.prices'],
    [
      `limits: {maxCost: 2}\nmodel: {provider: anthropic, name: m, prices: {input: 1, output: 1}}\nfallbackModels: [{provider: anthropic, name: n}]`,
      '3:19 limits.maxCost: needs the prices of each of the fallbackModels',
    ],
    [
      'limits: {maxCost: 0}\nmodel: {provider: anthropic, name: m, prices: {input: 1, output: 1}}',
      '3:19 limits.maxCost: must be more than 0',
    ],
    ['limits: {maxSteps: 10_000}', '3:20 limits.maxSteps: must be a number'],
    ['whenBusy: wait', '3:11 whenBusy: must be reject, enqueue or interrupt'],
    ['concurrency: {}', '3:14 concurrency.runs: is missing'],
    ['concurrency: {runs: 10001}', '3:21 concurrency.runs: must be at most 10000'],
    ['model: {}', '3:8 model.provider: is missing', '3:8 model.name: is missing'],
    ['model: {provider: x, name: y}', '3:19 model.provider: must be openai-compatible or anthropic'],
    [`model: {provider: anthropic, name: y, apiKey: ${CANARY}}`, `3:47 model.apiKey: ${REFERENCE}`],
    ['model: {provider: anthropic, name: y, apiKey: {}}', `3:47 model.apiKey: ${REFERENCE}`],
    ['model: {provider: anthropic, name: y, apiKey: {env: A, file: /b}}', `3:47 model.apiKey: ${REFERENCE}`],
    [
      `model: {provider: anthropic, name: y, apiKey: {env: ${CANARY}}}`,
      '3:53 model.apiKey.env: must be the name of a variable',
    ],
    ['model: {provider: anthropic, name: y, apiKey: {file: b}}', '3:54 model.apiKey.file: must be an absolute path'],
    ['model: {provider: anthropic, name: y, baseUrl: ftp://x}', `3:48 model.baseUrl: ${URL}`],
    [`model: {provider: anthropic, name: y, baseUrl: 'https://me:${CANARY}@x'}`, `3:48 model.baseUrl: ${URL}`],
    [
      'model: {provider: anthropic, name: y, settings: {temperature: 3}}',
      '3:63 model.settings.temperature: must be at most 2',
    ],
    [
      'model: {provider: openai-compatible, name: y, quirks: {leaveout: []}}',
      '3:56 model.quirks.leaveout: is not a known field',
    ],
    [
      'model: {provider: openai-compatible, name: y, quirks: {leaveOut: [x]}}',
      '3:67 model.quirks.leaveOut.0: must be stream_options, parallel_tool_calls, reasoning_effort or temperature',
    ],
    [
      'model: {provider: openai-compatible, name: y, quirks: {roles: x}}',
      '3:63 model.quirks.roles: must be stored, merged or alternating',
    ],
    ['toolServers: [{name: a}]', `3:15 toolServers.0: ${TRANSPORT}`],
    ['toolServers: [{name: a, command: x, url: http://y}]', `3:15 toolServers.0: ${TRANSPORT}`],
    ['toolServers: [x]', `3:15 toolServers.0: ${TRANSPORT}`],
    ['toolServers: [{name: A, command: x}]', `3:22 toolServers.0.name: ${NAME}`],
    ['toolServers: [{name: a, command: x, headers: {}}]', '3:37 toolServers.0.headers: is not a known field'],
    ['toolServers: [{name: a, command: x}, {name: a, url: http://x}]', '3:45 toolServers.1.name: must be unique'],
    ['toolServers: [{name: a, command: x, startMs: 11m}]', '3:46 toolServers.0.startMs: must be at most 10m'],
    ['toolServers: [{command: x}]', '3:15 toolServers.0.name: is missing'],
    [
      'toolServers: [{name: a, command: x, env: {PORT: 80}}]',
      '3:49 toolServers.0.env.PORT: must be text, {env: NAME} or {file: /path}; put numbers in quotes',
    ],
    [
      'toolServers: [{name: a, command: x, env: {A-B: x}}]',
      '3:43 toolServers.0.env.A-B: must be the name of a variable',
    ],
    [
      'toolServers: [{name: a, url: http://x, headers: {"A:B": x}}]',
      '3:50 toolServers.0.headers."A:B": must be the name of a header',
    ],
    [
      'toolServers: [{name: a, url: http://x, headers: {A: "a\\nb"}}]',
      '3:53 toolServers.0.headers.A: must not contain line breaks or other control characters',
    ],
    ['harnes: {a: &x [1]}\nmodel: *x', '3:1 harnes: is not a known field', '4:8 model: must be a map'],
  ])('%s', (wrong, ...problems) => {
    expect(told(`${SMALLEST}${wrong}\n`)).toEqual(problems.map((problem) => `agents/echo.yaml:${problem}`));
  });

  const secretNames = ['API_KEY', 'token', 'MY_SECRET', 'dbPassword'];
  const secretHeaders = ['Authorization', 'cookie', 'X-Api-Key', 'x-auth-user', 'Proxy-Authorization', 'Private-Token'];
  it.each([
    ...secretNames.map((name) => [name, `command: x, env: {${name}: ${CANARY}}`]),
    ...secretHeaders.map((name) => [name, `url: http://x, headers: {${name}: ${CANARY}}`]),
  ])('refuses %s that is not a reference, though something else is wrong too', (name, server) => {
    const problems = told(`${SMALLEST}toolServers: [{name: a, required: 5, ${server}}]`);
    expect(problems).toEqual([
      expect.stringMatching(/required: must be true or false$/),
      expect.stringContaining(`.${name}: ${REFERENCE}`),
    ]);
  });
});

it.each<[text: string, ...problems: string[]]>([
  ['harness: {name: x}', '1:1 name: is missing'],
  ['\n# c\nharness:\n  x: 1\n', '3:1 name: is missing', '4:3 harness.name: is missing'],
  ['5', '1:1 must be a map'],
  ['null', '1:1 must be a map'],
  ['- name: x', '1:1 must be a map'],
  ['name: a\nname: b', '2:1 is not YAML: Map keys must be unique'],
  ['name: "x', '1:9 is not YAML: Missing closing "quote'],
  ['name: !secret x', '1:7 is not YAML: Unknown tag'],
  [`name: "\\${CANARY}"`, '1:8 is not YAML: Invalid escape sequence'],
  [`name: !!${CANARY} x`, '1:7 is not YAML: Unknown tag'],
  [`%${CANARY}\n---\n# none\n`, '1:1 is not YAML: Unknown directive'],
  ['name: *x\nharness: *y', '1:7 is an alias without an anchor', '2:10 is an alias without an anchor'],
  [`name: |${CANARY}\n`, '1:8 is not YAML: Block scalar header includes extra characters'],
  ['name: x\nharness: {name: x, y: .inf}', '2:23 harness.y: must be a finite number'],
  [
    'name: x\nharness: &h {name: x, y: *h}',
    expect.stringMatching(/^.*:2:26 harness\.y: is nested too deeply/) as never,
  ],
  [`${SMALLEST}---\n${SMALLEST}kind: x\n---\nname: [\n`, '6:7 kind: must be pet or cattle', expect.anything()],
  ['\uFEFFname: x\r\nharness: {}\r\n', '2:10 harness.name: is missing'],
])('problems of %j', (text, ...problems) => {
  const places = problems.map((problem): unknown =>
    typeof problem === 'string' ? `agents/echo.yaml:${problem}` : problem,
  );
  expect(told(text)).toEqual(places);
});

it('tells the problems of JSON by their places too', () => {
  const json = JSON.stringify({ name: 5, harness: { name: 'echo' }, limits: { workMs: 'x' } }, null, '\t');
  expect(told(json, 'a.json')).toEqual(['a.json:2:10 name: must be text', `a.json:7:13 limits.workMs: ${DURATION}`]);
  const doubled = '{"name": "a",\n "harness": {"name": "x", "name": "y"}}';
  expect(told(doubled, 'a.json')).toEqual(['a.json:2:27 is not YAML: Map keys must be unique']);
});

it('tells no more than twenty, the first ones', () => {
  const problems = told(Array.from({ length: 50 }, (_, i) => `x${i}: 1\n`).join(''));
  expect(problems).toHaveLength(20);
  expect(problems.at(-1)).toMatch(/:18:1 x17: /);
});

it.each(['[', '- ', '? ', '{a: '])('refuses endless %s before it overflows the stack', (open) => {
  expect(told(open.repeat(50_000))).toEqual([
    expect.stringMatching(/^agents\/echo.yaml:1:\d{2,3} is nested too deeply$/),
  ]);
});

it('refuses aliases that grow without bound', () => {
  const bomb = Array.from({ length: 12 }, (_, i) => `x${i + 1}: &a${i + 1} [${`*a${i}, `.repeat(9)}]`);
  expect(told(`x0: &a0 [a]\n${bomb.join('\n')}\n`)).toEqual(['agents/echo.yaml:1:1 has aliases that expand too much']);
});

describe('a file that is too large is refused before it is parsed to its end', () => {
  const list = (count: number, of: (i: number) => string) => Array.from({ length: count }, (_, i) => of(i)).join('');
  it.each([
    ['bytes', `#${'x'.repeat(MAX_MANIFEST_BYTES)}`, '1:1 is larger than 1 MiB'],
    [
      'bytes of characters that take more than one',
      `#${'é'.repeat(MAX_MANIFEST_BYTES / 2)}`,
      '1:1 is larger than 1 MiB',
    ],
    ['keys of a map', list(60_000, (i) => `key${i}: 1\n`), '2001:8 has more than 2000 entries'],
    ['keys of a map within', `x:\n${list(60_000, (i) => `  key${i}: 1\n`)}`, '2002:3 has more than 2000 entries'],
    ['keys of a map in braces', `{${list(60_000, (i) => `k${i}: 1, `)}`, /^1:\d{5} has more than 2000 entries$/],
    ['items of a list', `x: [${'a,'.repeat(300_000)}]`, /^1:\d{4} has more than 2000 entries$/],
    ['items of a list by lines', `x:\n${'- a\n'.repeat(200_000)}`, /^2002:\d has more than 2000 entries$/],
    ['documents', '---\n'.repeat(200_000), /^\d{5}:\d has too many parts$/],
    ['comments', '# c\n'.repeat(200_000), /^\d{5}:\d has too many parts$/],
    ['lists of lists', `x: [${`[${'a,'.repeat(1_000)}],`.repeat(200)}]`, /^1:\d{5,6} has too many parts$/],
  ])('%s', (_, text, problem) => {
    expect(told(text)).toEqual([
      typeof problem === 'string'
        ? `agents/echo.yaml:${problem}`
        : expect.stringMatching(new RegExp(problem.source.replace('^', '^agents/echo\\.yaml:'))),
    ]);
  });

  it('accepts a file at the bounds', () => {
    const tools = list(1_000, (i) => `  - pattern: tool${i}\n    policy: allow\n`);
    const long = `instructions: "${'x'.repeat(100_000)}"\n`;
    expect(read(`${SMALLEST}${long}tools:\n${tools}`)).toHaveLength(1);
  });
});

describe('what is right', () => {
  it('has its defaults filled in, and durations in milliseconds', () => {
    const limits = 'limits: {queueMs: 500ms, workMs: 30s, waitMs: 365d}\nmodel: &m {provider: anthropic, name: m}\n';
    const [file] = read(`${SMALLEST}${limits}`);
    const { manifest } = file!;
    const defaults = { maxLosses: 3, providerRetryMs: 900_000, maxSteps: 100 };
    expect(manifest.limits).toEqual({ queueMs: 500, workMs: 30_000, waitMs: 31_536e6, ...defaults });
    expect(manifest).toMatchObject({ description: '', instructions: '', toolServers: [], tools: [], kind: 'cattle' });
    expect(manifest).not.toHaveProperty('concurrency');
  });

  it('may be several documents, the empty ones ignored, and anchors within one', () => {
    const second = 'name: &n second\nharness: {name: *n}\n';
    const files = read(`# nothing\n---\n---\n${SMALLEST}---\n# nothing\n---\n${second}...\n`);
    expect(files.map(({ manifest }) => manifest.name)).toEqual(['echo', 'second']);
    expect(files[1]!.manifest.harness.name).toBe('second');
    expect(files[1]!.placeOf(['name'])).toEqual({ line: 9, column: 10 });
    expect(read('')).toEqual([]);
  });

  it('knows the place of each path, or of what is nearest above it', () => {
    const [file] = read('name: x\nharness:\n  name: echo\n  list: [1, {a: 2}]\n');
    const place = (...path: (string | number)[]) => Object.values(file!.placeOf(path)).join(':');
    expect(place()).toBe('1:1');
    expect(place('harness')).toBe('3:3');
    expect(place('harness', 'list', 1, 'a')).toBe('4:17');
    expect(place('harness', 'list', 7)).toBe('4:9');
    expect(place('limits', 'workMs')).toBe('1:1');
  });

  it('lets later checks tell their problems with their places', () => {
    const [file] = read('name: x\nharness: {name: echo, colour: red}\n');
    const issue = { path: ['harness', 'colour'], message: 'is odd' };
    const problem = { file: 'agents/echo.yaml', line: 2, message: 'harness.colour: is odd' };
    expect(file!.problemOf({ ...issue, at: 'value' })).toEqual({ ...problem, column: 31 });
    expect(file!.problemOf({ ...issue, at: 'key' })).toEqual({ ...problem, column: 23 });
  });
});

const FULL = `
name: x
harness: {name: x}
model: {provider: anthropic, name: x, baseUrl: 'https://x', apiKey: {env: A}, settings: {temperature: 1}}
toolServers:
  - {name: a, required: true, command: x, args: [x], env: {A: x, API_KEY: {file: /x}}}
  - {name: b, url: 'https://x', headers: {Authorization: {env: A}}}
tools: [{pattern: x, policy: ask}]
limits: {workMs: 1h, maxSteps: 1}
whenBusy: reject
concurrency: {runs: 1}
`;

describe('a secret in the wrong place', () => {
  it('is never shown, wherever it stands instead of a value', () => {
    let [places, refusals] = [0, 0];
    for (const wrong of [CANARY, [CANARY], { file: CANARY }]) {
      for (let target = 0; ; target++) {
        const document = parseDocument(FULL);
        let seen = 0;
        visit(document, {
          Value: (key) => {
            // Not the fields' names: an unknown one has to be named.
            if (key !== 'key' && seen++ === target) return document.createNode(wrong);
            return undefined;
          },
        });
        if (seen <= target) break;
        places++;
        const problems = told(String(document));
        if (problems.length > 0) refusals++;
        expect(problems.join()).not.toContain(CANARY);
      }
    }
    expect(places).toBeGreaterThan(100);
    expect(refusals).toBeGreaterThan(80);
  });

  it('is never shown where it breaks the syntax', () => {
    const junk = fc.stringMatching(/^[ \n:{}[\]"'|>&*!%@`#,?-]{0,4}$/);
    const broken = fc.tuple(fc.nat(FULL.length), junk, junk);
    fc.assert(
      fc.property(broken, ([at, before, after]) => {
        const text = `${FULL.slice(0, at)}${before}${CANARY}${after}${FULL.slice(at)}`;
        // An unknown field is named.
        const syntax = told(text).filter(
          (problem) => problem.includes(' is not YAML') || problem.includes(' is an alias'),
        );
        expect(syntax.join()).not.toContain(CANARY);
      }),
    );
  });
});

it('never throws, and tells manifests or problems', () => {
  const words = fc.constantFrom(
    ...'name harness: { } [ ] - : \n & * ! | > " \' 1h .inf ~ % --- ... , ? # a <<'.split(' '),
  );
  const yamlish = fc
    .array(fc.oneof(words, fc.string({ unit: 'binary-ascii' })), { maxLength: 30 })
    .map((all) => all.join(' '));
  fc.assert(
    fc.property(fc.oneof(yamlish, fc.json()), (text) => {
      const { manifests, problems } = parseManifests(text, 'x');
      expect(manifests.length === 0 || problems.length === 0).toBe(true);
      for (const { line, column } of problems) expect(Math.min(line, column)).toBeGreaterThanOrEqual(1);
    }),
  );
});
