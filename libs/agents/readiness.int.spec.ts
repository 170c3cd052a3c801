import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fixedClock } from '#testing';
import type { Allowances } from './allowances.ts';
import { allowing } from './allowances.testing.ts';
import { echoHarness } from './echo/echo-harness.ts';
import { harnessesByName, type Harness, type ReadinessIssue } from './harness.ts';
import { agentManifestSchema, type AgentManifestInput } from './manifest.ts';
import { diffManifests } from './manifest-diff.ts';
import { ReadinessCheck } from './readiness.ts';
import { resolveSecret } from './secrets.ts';

const CANARY = 'sk-canary-4711';
let folder: string;
const clock = fixedClock(0);

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-readiness-'));
});
afterAll(() => rm(folder, { recursive: true }));

const secretFile = async (name: string, content: string): Promise<{ file: string }> => {
  const file = join(folder, name);
  await writeFile(file, content);
  return { file };
};

const manifest = (more: Partial<AgentManifestInput>) =>
  agentManifestSchema.parse({ name: 'a', harness: { name: 'echo' }, ...more });
const withKey = (apiKey: { env: string } | { file: string }, more: Partial<AgentManifestInput> = {}) =>
  manifest({ model: { provider: 'anthropic', name: 'm', apiKey }, ...more });

/** Variables that the tests name and that are not set. */
const UNSET = ['KEY', 'BLANK', 'NONE', 'TOKEN'];
const allowed = (env: Record<string, string | undefined>): Allowances =>
  allowing(env, { variables: UNSET, files: [folder], commands: ['/usr/bin/x'] });

function makeCheck(env: Record<string, string | undefined> = {}, harness: Harness = echoHarness()) {
  return new ReadinessCheck({ harnesses: harnessesByName([harness]), allowances: allowed(env), now: clock.now });
}

const message = 'a credential is missing';

it('lacks nothing where every secret is there', async () => {
  const servers = [
    { name: 'a', command: 'x', env: { PLAIN: 'text', TOKEN: { env: 'TOKEN' } } },
    { name: 'b', url: 'https://x', headers: { Authorization: await secretFile('header', `Bearer ${CANARY}\n`) } },
  ];
  const check = makeCheck({ TOKEN: CANARY, KEY: CANARY });
  expect(await check.of(withKey({ env: 'KEY' }, { toolServers: servers }))).toEqual([]);
});

it('tells operators which secrets are missing and why, and callers that one is', async () => {
  const missing = join(folder, 'missing');
  const empty = await secretFile('empty', ' \n\n');
  const big = await secretFile('big', CANARY.repeat(10_000));
  const binary = await secretFile('binary', `${CANARY}\0`);
  const servers = [
    { name: 'a', command: 'x', env: { T_KEY: { env: 'BLANK' }, PATH: { file: missing } } },
    {
      name: 'b',
      url: 'https://x',
      headers: { Cookie: empty, 'X-Auth': big, 'X-Key': binary, 'X-Odd': { file: folder } },
    },
  ];
  const issues = await makeCheck({ BLANK: ' ', OTHER: CANARY }).of(withKey({ env: 'KEY' }, { toolServers: servers }));
  expect(issues.map((issue) => issue.detail)).toEqual([
    'model.apiKey: The variable KEY is not set, or is empty.',
    'toolServers.0.env.T_KEY: The variable BLANK is not set, or is empty.',
    `toolServers.0.env.PATH: The file ${missing} cannot be read (ENOENT).`,
    `toolServers.1.headers.Cookie: The file ${empty.file} is empty.`,
    `toolServers.1.headers.X-Auth: The file ${big.file} is too big for a secret.`,
    `toolServers.1.headers.X-Key: The file ${binary.file} is not text.`,
    `toolServers.1.headers.X-Odd: ${folder} is not a file.`,
  ]);
  expect(new Set(issues.map((issue) => issue.message))).toEqual(new Set([message]));
});

it.each([
  [
    'a variable that is not listed',
    { env: 'OTHER' },
    'The variable OTHER is not allowed: add it to MANIFEST_VARIABLES.',
  ],
  [
    'an ending that is not listed',
    { env: 'OTHER_API_TOKEN' },
    'The variable OTHER_API_TOKEN is not allowed: add it to MANIFEST_VARIABLES.',
  ],
  ['a setting', { env: 'DATABASE_URL' }, 'The variable DATABASE_URL belongs to the service: no manifest may name it.'],
  ['the credentials of S3', { env: 'AWS_SECRET_ACCESS_KEY' }, /belongs to the service/],
  [
    'a file that is not listed',
    { file: '/etc/passwd' },
    /: The file \/etc\/passwd is not allowed: add it or its folder to/,
  ],
])('lacks what manifests may not name: %s', async (_what, apiKey, why) => {
  const check = makeCheck({ OTHER: CANARY, DATABASE_URL: CANARY, AWS_SECRET_ACCESS_KEY: CANARY });
  const issues = await check.of(withKey(apiKey));
  expect(issues).toEqual([{ message, detail: expect.stringMatching(why) as string }]);
});

it('follows no link and no .. out of a folder that is allowed', async () => {
  const outside = await mkdtemp(join(tmpdir(), 'spool-outside-'));
  await writeFile(join(outside, 'key'), CANARY);
  await symlink(join(outside, 'key'), join(folder, 'link'));
  await symlink(outside, join(folder, 'folder'));
  const { file: own } = await secretFile('own', CANARY);
  const allowances = { ...allowed({}), ownFiles: [own] };
  const named = [
    join(folder, 'link'),
    join(folder, 'folder/key'),
    `${folder}/../${basename(outside)}/key`,
    `${folder}x/key`,
  ];
  for (const file of [...named, own])
    await expect(resolveSecret({ file }, allowances)).rejects.toMatchObject({ name: 'NotAllowed' });
  // A link within the folder is allowed.
  const { file } = await secretFile('inside', CANARY);
  await symlink(file, join(folder, 'inner'));
  expect(await resolveSecret({ file: join(folder, 'inner') }, allowances)).toBe(CANARY);
  await rm(outside, { recursive: true });
});

it('lacks programs and networks that the installation does not give', async () => {
  const server = { name: 'a', command: '/bin/sh', network: true };
  const allowedHere = { name: 'b', command: 'x' };
  const issues = await makeCheck().of(manifest({ toolServers: [server, allowedHere] }));
  expect(issues.map(({ detail }) => detail)).toEqual([
    'toolServers.0.command: The command "/bin/sh" is not allowed: add its absolute path to TOOL_SERVER_COMMANDS.',
    'toolServers.0.network: Tool servers have no network here: set TOOL_SERVER_NETWORK=on to give them the worker’s.',
  ]);
  const optional = manifest({ toolServers: [{ ...server, required: false }] });
  expect(await makeCheck().of(optional)).toEqual([]);
  expect(await makeCheck().warnings(optional)).toHaveLength(2);
});

it('does without the secrets of a fallback model and of a tool server that is not required', async () => {
  const fallbackModels = [{ provider: 'anthropic' as const, name: 'm', apiKey: { env: 'NONE' } }];
  const server = { name: 'a', url: 'https://x', headers: { Cookie: { env: 'NONE' } } };
  const optional = manifest({ fallbackModels, toolServers: [{ ...server, required: false }] });
  const message = 'a fallback model, or a tool server that is not required, has no credential';
  expect(await makeCheck().of(optional)).toEqual([]);
  expect(await makeCheck().warnings(optional)).toEqual([
    { message, detail: 'fallbackModels.0.apiKey: The variable NONE is not set, or is empty.' },
    {
      message,
      detail: 'toolServers.0.headers.Cookie: The variable NONE is not set, or is empty.',
    },
  ]);
  expect(await makeCheck({ NONE: 'there' }).warnings(optional)).toEqual([]);
  const required = manifest({ toolServers: [server] });
  expect(await makeCheck().of(required)).toHaveLength(1);
  expect(await makeCheck().warnings(required)).toEqual([]);
});

it('asks the harness only once its settings are right', async () => {
  const own: ReadinessIssue = { message: 'its provider is away', detail: 'https://x is away.' };
  const readiness = jest.fn(async () => [own]);
  const check = makeCheck({}, { ...echoHarness(), readiness });
  const wrong = await check.of(manifest({ harness: { name: 'echo', pauseMs: -1 } }));
  expect(wrong.map((issue) => issue.message)).toEqual(['the settings of its harness are wrong']);
  expect(readiness).not.toHaveBeenCalled();
  expect(await check.of(withKey({ env: 'KEY' }))).toEqual([expect.objectContaining({ message }), own]);
  expect((await check.of(withKey({ env: 'KEY' }, { harness: { name: 'x' } }))).map((issue) => issue.message)).toEqual([
    'its harness is missing',
    message,
  ]);
});

it('remembers the answer for two seconds a manifest, and a failure not at all', async () => {
  const env: Record<string, string> = {};
  const readiness = jest.fn(async (): Promise<ReadinessIssue[]> => []);
  const check = makeCheck(env, { ...echoHarness(), readiness });
  const asked = withKey({ env: 'KEY' });
  expect(await check.of(asked)).toHaveLength(1);
  env.KEY = CANARY;
  clock.advance(1_999);
  expect(await check.of(asked)).toHaveLength(1);
  expect(readiness).toHaveBeenCalledTimes(1);
  expect(await check.of(withKey({ env: 'KEY' }))).toEqual([]);
  clock.advance(1);
  readiness.mockRejectedValueOnce(new Error('broken'));
  await expect(check.of(asked)).rejects.toThrow('broken');
  expect(await check.of(asked)).toEqual([]);
});

it.each([
  ['', CANARY],
  ['\n', CANARY],
  ['\r\n', CANARY],
  ['\r', CANARY],
  ['\r\n\n', CANARY],
  [' \n', `${CANARY} `],
  ['\nsecond line\n', `${CANARY}\nsecond line`],
])('trims line breaks, and nothing else, at the end of a secret that ends with %j', async (end, secret) => {
  expect(await resolveSecret(await secretFile('key', CANARY + end), allowed({}))).toBe(secret);
  expect(await resolveSecret({ env: 'KEY' }, allowed({ KEY: CANARY + end }))).toBe(secret);
});

it('treats a variable of only line breaks as a missing secret', async () => {
  const resolved = resolveSecret({ env: 'KEY' }, allowed({ KEY: '\r\n' }));
  await expect(resolved).rejects.toThrow('The variable KEY is not set, or is empty.');
});

it('shows a secret nowhere', async () => {
  const file = await secretFile('key', CANARY);
  const env = { KEY: CANARY };
  const shown = [];
  for (const reference of [file, { env: 'KEY' }, { env: 'NONE' }, { file: `${file.file}/x` }]) {
    const asked = withKey(reference, { harness: { name: 'none' } });
    shown.push(await makeCheck(env).of(asked), await diffManifests(null, asked));
    shown.push(await resolveSecret(reference, allowed(env)).then(() => '', String));
  }
  expect(JSON.stringify(shown)).toContain('NONE');
  expect(JSON.stringify(shown)).not.toContain(CANARY);
});
