import { CommandError, EXIT } from './exit-codes.ts';
import { run } from './cli.testing.ts';

const ID = '01JD0000000000000000000000';
const OTHER = '01JD0000000000000000000001';
const createdAt = '2026-11-21T12:00:00.000Z';
const acme = {
  id: ID,
  name: 'Acme',
  createdAt,
  concurrency: { runs: 20 },
  files: { count: 2, bytes: 10, maxCount: null, maxBytes: 99, limits: { maxCount: 1_000, maxBytes: 99 } },
};
const token = {
  ...{ id: ID, kind: 'operator', name: 'first', status: 'active', personId: null, organizationId: null, agentIds: [] },
  ...{ allowAttribution: false, createdAt, expiresAt: null, revokedAt: null, rotatedAt: null, oldSecretUntil: null },
  lastUsedAt: null,
  ...{ requestsPerMinute: 700, maxStreams: null, limits: { requestsPerMinute: 700, maxStreams: null } },
};
const secret = `spool_op_${'A'.repeat(48)}`;

test('a list is a table for people, an array for programs, and says when there is more', async () => {
  const page = { organizations: [acme], nextCursor: ID };
  const people = await run(['org', 'list'], { listOrganizations: page });
  expect(people).toMatchObject({
    code: 0,
    out: expect.stringMatching(
      /^ID +NAME +RUN LIMIT +FILES +BYTES +CREATED\n01JD\S+ +Acme +20 +2 +10 +2026\S+\n$/,
    ) as string,
  });
  expect(people.err).toBe('There are more; pass --all to list them all.\n');
  const programs = await run(['org', 'list', '--json'], { listOrganizations: page });
  expect(JSON.parse(programs.out)).toEqual([acme]);
});

test('--all reads page after page', async () => {
  const pages = [
    { organizations: [acme], nextCursor: ID },
    { organizations: [{ ...acme, id: OTHER }], nextCursor: null },
  ];
  const { out, err, calls } = await run(['org', 'list', '--all', '--json'], { listOrganizations: () => pages.shift() });
  expect((JSON.parse(out) as object[]).length).toBe(2);
  expect(err).toBe('');
  expect(calls.map(({ input }) => input)).toEqual([{ query: {} }, { query: { cursor: ID } }]);
});

test('a name is looked up; of none and of several an error says so', async () => {
  const named = (organizations: object[]) =>
    run(['org', 'rename', 'Acme', 'New'], {
      listOrganizations: { organizations, nextCursor: null },
      renameOrganization: { organization: acme },
    });
  expect((await named([acme])).calls.at(-1)).toEqual({
    name: 'renameOrganization',
    input: { params: { organizationId: ID }, body: { name: 'New' } },
  });
  expect(await named([])).toMatchObject({ code: EXIT.notFound, err: 'No organization is named "Acme".\n' });
  const several = await named([acme, { ...acme, id: OTHER }]);
  expect(several).toMatchObject({ code: EXIT.usage, calls: [{ name: 'listOrganizations' }] });
  expect(several.err).toContain(ID);
  expect(several.err).toContain(OTHER);
});

test.each([
  ['20', 20],
  ['none', null],
])('org limit %s', async (given, runs) => {
  const { code, calls } = await run(['org', 'limit', ID, given], { limitOrganization: { organization: acme } });
  expect(code).toBe(0);
  expect(calls.at(-1)).toEqual({
    name: 'limitOrganization',
    input: { params: { organizationId: ID }, body: { runs } },
  });
});

test.each([
  [['--files', '5', '--bytes', 'none'], { maxCount: 5, maxBytes: null }],
  [['--bytes', '0'], { maxBytes: 0 }],
])('org quota %j', async (options, body) => {
  const { code, calls, out } = await run(['org', 'quota', ID, ...options], { setFileQuota: { organization: acme } });
  expect(code).toBe(0);
  expect(calls.at(-1)).toEqual({ name: 'setFileQuota', input: { params: { organizationId: ID }, body } });
  expect(out).toMatch(/max bytes +99\n?$/im);
});

test.each([
  [{}, '1000 (default)', '99'],
  [{ maxBytes: null, limits: { maxCount: null, maxBytes: null } }, 'no limit', 'no limit'],
])('org show tells which limits of files are in force (%j)', async (files, count, bytes) => {
  const { out } = await run(['org', 'show', ID], {
    getOrganization: { organization: { ...acme, files: { ...acme.files, ...files } } },
    listPeople: { people: [], nextCursor: null },
  });
  const told = out.split('\n').map((line) => line.split(/ {2,}/));
  expect(told).toEqual(
    expect.arrayContaining([
      ['max files', count],
      ['max bytes', bytes],
    ]),
  );
});

test('org quota refuses a text that is no number, and --hash needs --files', async () => {
  expect(await run(['org', 'quota', ID, '--files', '-1'], {})).toMatchObject({ code: EXIT.usage, calls: [] });
  expect(await run(['verify', '--hash'], {})).toMatchObject({ code: EXIT.usage, calls: [] });
});

test.each(['x', '-1', '1.5', ''])('org limit %p is wrong usage, and nothing is lifted', async (given) => {
  const { code, calls } = await run(['org', 'limit', ID, given], {});
  expect({ code, calls }).toEqual({ code: EXIT.usage, calls: [] });
});

test.each([
  [['--requests-per-minute', '20000'], { requestsPerMinute: 20_000 }],
  [['--streams', '1'], { maxStreams: 1 }],
  [['--requests-per-minute', 'default', '--streams', 'default'], { requestsPerMinute: null, maxStreams: null }],
])('token limit %j', async (options, body) => {
  const { code, out, calls } = await run(['token', 'limit', ID, ...options], { updateToken: { token } });
  expect(code).toBe(0);
  expect(calls.at(-1)).toEqual({ name: 'updateToken', input: { params: { tokenId: ID }, body } });
  expect(out).toMatch(/^requests per minute +700$/m);
});

test('token limit shows which limit is a default', async () => {
  const service = { ...token, kind: 'service', limits: { requestsPerMinute: 700, maxStreams: 10_000 } };
  const { out } = await run(['token', 'show', ID], { getToken: { token: service } });
  expect(out).toMatch(/^streams per process +10000 \(default\)$/m);
});

test('token create sends the limits from its options', async () => {
  const args = ['token', 'create', '--user', ID, '--name', 'n', '--requests-per-minute', '5', '--streams', '6'];
  const { code, calls } = await run(args, { mintToken: { token, secret } });
  expect(code).toBe(0);
  expect(calls.at(-1)!.input).toMatchObject({ body: { requestsPerMinute: 5, maxStreams: 6 } });
});

test.each([
  ['limit', ID],
  ['limit', ID, '--streams', '0'],
  ['limit', ID, '--requests-per-minute', '1.5'],
  ['create', '--operator', '--name', 'n', '--streams', '5'],
  ['create', '--operator', '--name', 'n', '--requests-per-minute', 'default'],
])('token %s %s %s %s %s %s is wrong usage, and nothing is called', async (...args) => {
  const { code, calls } = await run(['token', ...args], {});
  expect({ code, calls }).toEqual({ code: EXIT.usage, calls: [] });
});

test('a new secret is all that goes to standard output', async () => {
  const args = ['token', 'create', '--operator', '--name', 'first'];
  const { out, err, code } = await run(args, { mintToken: { token, secret } });
  expect({ out, code }).toEqual({ out: `${secret}\n`, code: 0 });
  expect(err).toContain(ID);
  expect(err).not.toContain(secret);
});

test.each([
  ['none', []],
  ['two', ['--operator', '--user', 'Jo']],
  ['a service without Agents', ['--service', 'Acme']],
  ['a person with Agents', ['--user', 'Jo', '--agent', 'echo']],
  ['an operator with attribution', ['--operator', '--attribution']],
])('a token of %s is refused, and nothing is sent', async (_, args) => {
  const result = await run(['token', 'create', '--name', 'x', ...args], {});
  expect(result).toMatchObject({ code: EXIT.usage, out: '', calls: [] });
});

test('a token as an argument is refused, not sent and not said again', async () => {
  for (const args of [
    ['org', 'show', secret],
    ['org', 'list', `--${secret}`],
    ['token', 'show', secret, '--json'],
  ]) {
    const { code, out, err, calls } = await run(args, {});
    expect({ code, out, calls }).toEqual({ code: EXIT.usage, out: '', calls: [] });
    expect(err).toContain('rotate it');
    expect(err).not.toContain('AAAA');
  }
});

test('errors are a line for people and JSON for programs, and hold no token', async () => {
  const script = {
    listOrganizations: () => {
      throw new CommandError('conflict', `Not with ${secret}.`);
    },
  };
  expect(await run(['org', 'list'], script)).toMatchObject({ code: 6, out: '', err: 'Not with spool_op_….\n' });
  const { err } = await run(['org', 'list', '--json'], script);
  expect(JSON.parse(err)).toEqual({ error: { code: 'conflict', message: 'Not with spool_op_….' } });
});

test.each([
  ['an unknown option', ['org', 'list', '--nope'], "unknown option '--nope'"],
  ['no command', ['org'], 'No command given; --help lists the commands.'],
  ['a token as an option', ['org', 'list', `--${secret}`], 'A token was passed as an argument.'],
])('wrong usage is JSON for programs too: %s', async (_, args, message) => {
  const { code, out, err } = await run([...args, '--json'], {});
  expect({ code, out }).toEqual({ code: EXIT.usage, out: '' });
  const told = JSON.parse(err) as { error: { code: string; message: string } };
  expect(told.error).toEqual({ code: 'usage', message: expect.stringContaining(message) as string });
});

test('what other people have written cannot move the cursor', async () => {
  const organizations = [{ ...acme, name: 'A\u001b[2J\rB\nC' }];
  const { out } = await run(['org', 'list'], { listOrganizations: { organizations, nextCursor: null } });
  expect(out).toContain('A\\u001b[2J\\u000dB C');
  // One character that begins what ESC [ begins, and that JSON leaves as it is.
  const name = 'a\u009b2J';
  const agent = { id: ID, name, organizationId: ID, access: 'organization', invitedPersonIds: [] };
  const script = {
    getAgent: {
      ...{ agent, manifest: { name, instructions: name }, readiness: [{ message: name, detail: name }] },
      ...{ warnings: [{ message: name, detail: name }], toolPolicies: [{ pattern: name, policy: 'ask' }] },
      toolServers: [],
    },
    deleteAgent: { agent, ended: 0, complete: true },
    verify: [
      { done: true, streams: 1, events: 1, found: 1, findings: [{ threadId: ID, invariant: 'I1', message: name }] },
    ],
  };
  for (const args of [['agent', 'show', ID], ['agent', 'delete', ID, '--yes'], ['verify']]) {
    const shown = await run(args, script);
    expect(shown.out).toContain('a\\u009b2J');
    expect(shown.out).not.toContain('\u009b');
  }
});

test('agent show says what it lacks, what it does without, and what its tools may do', async () => {
  const agent = {
    id: ID,
    name: 'echo',
    organizationId: ID,
    access: 'organization',
    invitedPersonIds: [],
    deletedAt: null,
  };
  const lack = (detail: string) => [{ message: 'x', detail }];
  const answer = {
    ...{ agent, manifest: { name: 'echo' }, readiness: lack('No key.'), warnings: lack('No cookie.') },
    toolPolicies: [
      { pattern: 'files_*', policy: 'ask' },
      { pattern: '*', policy: 'deny' },
    ],
    toolServers: [
      { name: 'git', required: true },
      { name: 'web', required: false },
    ],
  };
  const { out } = await run(['agent', 'show', ID], { getAgent: answer });
  expect(out).toContain('It cannot run:\n  No key.\n\nWarnings:\n  No cookie.\n');
  expect(out).toMatch(/\nTOOLS +POLICY\nfiles_\* +ask\n\* +deny\n/);
  expect(out).toContain('\nTool servers: git, web (not required)\n');
  const plain = { ...answer, readiness: [], warnings: [], toolPolicies: [], toolServers: [] };
  const shown = (await run(['agent', 'show', ID], { getAgent: plain })).out;
  expect(shown).toContain('\n\nIt can run.\n\n{');
});

test('run show tells what a Run spent its time and tokens on', async () => {
  const cause = { summary: '503 from api.example', attempt: 2, source: 'provider', waitedMs: 1_234 };
  const span = { attempt: 1, holder: 'w', outcome: 'ok', firstTextAt: null, cause: null, toolCallId: null };
  const open = { ...span, inputTokens: null, outputTokens: null, endedAt: null, outcome: null, cause };
  const at = (ms: number) => new Date(Date.parse(createdAt) + ms).toISOString();
  const ended = { ...span, startedAt: createdAt, endedAt: at(1_500), firstTextAt: at(250) };
  const timeline = {
    ...{ agentVersion: 3, losses: 1, isComplete: false, output: null },
    input: { text: `Where is it?${' '.repeat(600)}`, length: 612 },
    spans: [
      { ...ended, kind: 'model', name: 'claude', inputTokens: 12, outputTokens: 34 },
      { ...open, kind: 'tool', name: 'Look', startedAt: at(1_500) },
    ],
    usage: { inputTokens: 12, outputTokens: 34, cachedInputTokens: null, cost: 0.25 },
  };
  const answer = { run: { id: ID, status: 'running', work: null, error: null, cause }, timeline };
  const { out } = await run(['run', 'show', ID], { getRunTimeline: answer });
  expect(out).toMatch(/\nid +01JD|^id +01JD/);
  expect(out).toMatch(/\ninput +Where is it\? +… \(the first 500 of 612 characters\)\noutput +-\n/);
  expect(out).toMatch(/\ncost +0\.25\nlosses +1\n/);
  expect(out).toMatch(/\S+Z +1\.500 s +model +claude +ok +1 +0\.250 s +12 +34 +-\n/);
  expect(out).toMatch(/\S+Z +running +tool +Look +- +1 +- +- +- +503 from api\.example\n/);
  expect(out).toMatch(/\nfailed attempt +2\nfailed by +provider\nwaited +1\.234 s\n/);
  expect(out).toContain('more events than the timeline reads');
  const json = JSON.parse((await run(['run', 'show', ID, '--json'], { getRunTimeline: answer })).out) as object;
  expect(json).toEqual({ ...answer.run, timeline });
});

test('what Runs ask is a line a request, and an answer names it; allowing asks first', async () => {
  const request = { toolCallId: 'c', toolName: 'send', title: 'Send', toolInput: { to: 'b' } };
  const requests = [ID, OTHER].map((requestId) => ({ requestId, ...request }));
  const waiting = [{ runId: ID, threadId: ID, agentName: 'echo', since: createdAt, expiresAt: null, requests }];
  const { out } = await run(['confirmation', 'list'], { listConfirmations: { waiting, nextCursor: null } });
  expect(out.trimEnd().split('\n')).toHaveLength(3);
  expect(out).toMatch(new RegExp(`${ID} +${OTHER} +send +{"to":"b"} +echo +\\S+Z +-`));
  const script = { answerConfirmation: { run: { id: ID, status: 'queued' } } };
  const rejected = await run(['confirmation', 'answer', ID, OTHER, 'reject'], script);
  expect(rejected).toMatchObject({ code: EXIT.done, out: `Answered. The Run ${ID} is queued.\n` });
  const input = { params: { threadId: ID, requestId: OTHER }, body: { decision: 'reject_once' } };
  expect(rejected.calls).toEqual([{ name: 'answerConfirmation', input }]);
  const unasked = await run(['confirmation', 'answer', ID, OTHER, 'allow'], script);
  expect(unasked).toMatchObject({ code: EXIT.usage, calls: [] });
});

test('a failed check of the doctor is exit code 1, a warning is not', async () => {
  const withStatus = (status: string) =>
    run(['doctor'], { runDoctor: { checks: [{ name: 'n', status, message: 'm' }] } });
  expect((await withStatus('warning')).code).toBe(EXIT.done);
  expect((await withStatus('failed')).code).toBe(EXIT.failed);
});

test('verify that ends before it is done says where to go on', async () => {
  const report = { done: false, streams: 1, events: 1, found: 0, unknownEvents: 0, byInvariant: {}, findings: [] };
  const { code, err } = await run(['verify'], { verify: [{ ...report, lastThreadId: ID }] });
  expect(code).toBe(EXIT.away);
  expect(err).toContain(`spool verify --from ${ID}`);
});

test('tail goes on after what it has shown when it is cut off, and ends when the Thread is gone', async () => {
  const entry = (id: string) => ({
    id,
    type: 'user.message',
    occurredAt: createdAt,
    status: 'available',
    content: 'a\nb',
  });
  const connections = [
    function* () {
      yield entry('1');
      throw new CommandError('away', 'Cut off.');
    },
    function* () {
      yield entry('2');
    },
    function* () {},
  ];
  const { code, out, err, calls } = await run(['thread', 'tail', ID], {
    tailThread: () => connections.shift()!(),
    getThread: () => {
      throw new CommandError('notFound', 'There is none.');
    },
  });
  expect(calls.map(({ input }) => (input as { query?: { after?: string } }).query?.after)).toEqual([
    ...[undefined, '1', '2'],
    undefined,
  ]);
  expect(code).toBe(EXIT.done);
  expect(out.match(/user\.message +a\n +b\n/g)).toHaveLength(2);
  expect(err).toBe('Cut off. Trying again.\nThe Thread is deleted.\n');
});

test('help and version are exit code 0, no command at all is wrong usage', async () => {
  expect(await run(['--version'], {})).toMatchObject({
    code: EXIT.done,
    out: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
  });
  expect((await run(['--help'], {})).code).toBe(EXIT.done);
  expect((await run(['help', 'org'], {})).code).toBe(EXIT.done);
  expect((await run([], {})).code).toBe(EXIT.usage);
  expect((await run(['token'], {})).code).toBe(EXIT.usage);
});

test('help lists every exit code', async () => {
  const { out } = await run(['--help'], {});
  for (const code of Object.values(EXIT)) expect(out).toMatch(new RegExp(`^  ${code}  `, 'm'));
});

const overview = {
  ...{ at: createdAt, windowMinutes: 60, bucketSeconds: 60, problems: [], series: [], failures: [], redis: null },
  runs: { queued: 1, booting: 9, running: 2, waiting_input: 3, completed: 4, failed: 5, cancelled: 6, expired: 7 },
  startLatency: { count: 8, p50Ms: 9, p95Ms: null, p99Ms: null },
  queue: {
    ...{ name: 'q', backend: 'redis', pausedAt: null, awaySince: null, offered: 0, oldestReadyMs: 10, workers: [] },
    runs: { ready: 1, leased: 2, waiting: 3, delayed: 0, limited: 0 },
  },
  database: { version: '17.2', latencyMs: 1.4, connections: 11, maxConnections: 100, sizeBytes: 2 ** 20 },
};

test('overview says that nothing is wrong, and the numbers', async () => {
  const { code, out, calls } = await run(['overview'], { getOverview: { overview } });
  expect([code, calls]).toEqual([0, [{ name: 'getOverview', input: { query: {} } }]]);
  expect(out).toMatch(/^No problems\.\n/);
  for (const line of [
    '1 queued, 9 booting, 2 running, 3 waiting',
    '4 completed, 5 failed',
    'p50 9 ms, p95 -',
    '17.2, 1 ms, 11 of 100',
  ]) {
    expect(out).toContain(line);
  }
});

test.each([
  ['critical', EXIT.failed],
  ['warning', EXIT.done],
])('overview with a %s problem exits with %d, and names problem and Runs', async (severity, code) => {
  const runs = [{ id: ID, threadId: OTHER, agentName: 'echo', status: 'running', error: null }];
  const problem = { kind: 'lease_over', severity, message: 'Look.', count: 1, since: createdAt, runs };
  const answer = { getOverview: { overview: { ...overview, problems: [problem] } } };
  const people = await run(['overview', '--window', '1d'], answer);
  expect([people.code, people.calls[0]?.input]).toEqual([code, { query: { windowMinutes: '1440' } }]);
  for (const word of [severity, 'lease_over', createdAt, 'Look.', ID, OTHER]) expect(people.out).toContain(word);
  expect(JSON.parse((await run(['overview', '--json'], answer)).out)).toEqual(answer.getOverview.overview);
});

test.each(['4m', '8d', 'x'])('overview --window %s is wrong usage', async (window) => {
  expect(await run(['overview', '--window', window], {})).toMatchObject({ code: EXIT.usage, calls: [] });
});
