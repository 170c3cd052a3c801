import { FileLinks, SignedTokens } from '#access';
import { newId, parseSigningKeys } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest, type Reply } from '../api-under-test.testing.ts';

const KEYS = `k:${'a'.repeat(43)}=`;
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const bytes = (text: string): string => Buffer.from(text, 'latin1').toString('base64');
const GIF = bytes('GIF89a\x01\0\x01\0\0\0\0;');
const JPEG = bytes(`\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9`);
const WEBP = bytes(`RIFF\x24\0\0\0WEBPVP8 ${'\0'.repeat(24)}`);
const AVIF = bytes(`\0\0\0\x18ftypavif\0\0\0\0avifmif1${'\0'.repeat(8)}`);
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>').toString('base64');
const PDF = Buffer.from('%PDF-1.4\n%%EOF').toString('base64');

let api: ApiUnderTest;
let parent: { id: string; token: string };
let ada: string;
let threadId: string;

beforeAll(async () => {
  api = await ApiUnderTest.start({ settings: { BROWSER_TOKEN_KEYS: KEYS } });
  parent = await newParent();
  ada = await tokenFor('ada', parent.token);
  const { json } = await api.post(`/agents/${api.agentId}/threads`, { token: ada, body: { userId: 'ada' } });
  threadId = json.thread.id;
});
afterAll(() => api.stop());

const newParent = (agentIds = [api.agentId]) =>
  api.access.mintToken({ kind: 'service', organizationId: api.organizationId, agentIds, name: 'app' });

async function tokenFor(userId: string, token: string, verbs = ['read', 'send', 'upload', 'manage']): Promise<string> {
  const { json } = await api.post('/browser-tokens', { token, body: { userId, verbs } });
  return (json as unknown as { token: string }).token;
}

const fileIdOf = ({ json }: Reply): string => (json as unknown as { file: { id: string } }).file.id;

async function attach(name: string, contentBase64: string, token = ada, thread = threadId): Promise<string> {
  const body = { name, contentType: 'application/octet-stream', contentBase64 };
  return fileIdOf(await api.post(`/threads/${thread}/files`, { token, body }));
}

async function linkTo(fileId: string, token = ada): Promise<string> {
  const { json, headers } = await api.get(`/files/${fileId}/link`, { token });
  expect(headers.get('cache-control')).toBe('no-store');
  return (json as unknown as { url: string }).url;
}

const reasonOf = ({ status, headers }: Response): string => `${status} ${headers.get('spool-error-reason')}`;

test.each([
  ['a.png', PNG, 'image/png', 'inline; filename=a.png'],
  ['a.jpg', JPEG, 'image/jpeg', 'inline; filename=a.jpg'],
  ['a.gif', GIF, 'image/gif', 'inline; filename=a.gif'],
  ['a.webp', WEBP, 'image/webp', 'inline; filename=a.webp'],
  ['a.avif', AVIF, 'image/avif', 'inline; filename=a.avif'],
  ['a.svg', SVG, 'application/octet-stream', 'attachment; filename=a.svg'],
  ['a.pdf', PDF, 'application/octet-stream', 'attachment; filename=a.pdf'],
  ['b.png', SVG, 'application/octet-stream', 'attachment; filename=b.png'],
])('%s is sent without a token, and can run nothing', async (name, base64, type, disposition) => {
  const url = await linkTo(await attach(name, base64));
  expect(url).toMatch(new RegExp(`^${new URL(api.url).origin}/file-links/`));
  const response = await fetch(url);
  const sent = Buffer.from(await response.arrayBuffer());
  const shown = ['content-type', 'content-disposition', 'x-content-type-options', 'content-security-policy'];
  expect([response.status, ...shown.map((header) => response.headers.get(header))]).toEqual([
    ...[200, type, disposition, 'nosniff', "default-src 'none'; sandbox"],
  ]);
  expect(sent.toString('base64')).toBe(base64);
  const part = await fetch(url, { headers: { range: 'bytes=0-1' } });
  expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, sent.subarray(0, 2)]);
  const cached = await fetch(url, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } });
  expect([cached.status, await cached.text()]).toEqual([304, '']);
});

test('a link is for one file, and other texts are 404', async () => {
  const url = await linkTo(await attach('a.png', PNG));
  const others = [ada, ada.slice('spool_bt_'.length), 'a.b.c'].map((text) => url.replace(/[^/]+$/, text));
  for (const other of [`${url.slice(0, -8)}AAAAAAAA`, ...others]) {
    expect(reasonOf(await fetch(other))).toBe('404 file_not_found');
  }
});

test('a link has expired after five minutes, and with the browser token that made it', async () => {
  const fileId = await attach('a.png', PNG);
  const { json } = await api.get(`/files/${fileId}/link`, { token: parent.token });
  const now = Date.parse((json as unknown as { expiresAt: string }).expiresAt) - 300_000;
  const links = new FileLinks(new SignedTokens(parseSigningKeys(KEYS), () => now - 301_000));
  const caller = { kind: 'service', tokenId: parent.id } as Parameters<FileLinks['make']>[1];
  const { token } = await links.make(fileId, caller);
  const expired = await fetch(`${new URL(api.url).origin}/file-links/${token}`);
  expect(reasonOf(expired)).toBe('401 token_expired');
  const { json: minted } = await api.post('/browser-tokens', {
    token: parent.token,
    body: { userId: 'ada', verbs: ['read'], expiresInSeconds: 60 },
  });
  const short = minted as unknown as { token: string; expiresAt: string };
  const link = await api.get(`/files/${fileId}/link`, { token: short.token });
  expect(link.json).toMatchObject({ expiresAt: short.expiresAt });
});

test('a link to a file of others, a draft, or without the verb is refused as the file is', async () => {
  const bob = await tokenFor('bob', parent.token);
  const fileId = await attach('a.png', PNG);
  const form = new FormData();
  form.append('file', new Blob(['hello']), 'a.txt');
  const draft = fileIdOf(await api.post(`/agents/${api.agentId}/files`, { token: ada, form }));
  const refused = [
    await api.get(`/files/${fileId}/link`, { token: bob }),
    await api.get(`/files/${newId()}/link`, { token: bob }),
    await api.get(`/files/${draft}/link`, { token: ada }),
    await api.get(`/files/${fileId}/link`, { token: await tokenFor('ada', parent.token, ['send']) }),
  ];
  expect(refused.map(({ status }) => status)).toEqual([404, 404, 404, 403]);
  expect(refused[0]!.text).toBe(refused[1]!.text);
});

test('a link stops with its file, and with the right of the token that made it', async () => {
  const fileId = await attach('a.png', PNG);
  const url = await linkTo(fileId);
  await api.call('DELETE', `/files/${fileId}`, { token: ada });
  expect(reasonOf(await fetch(url))).toBe('404 file_not_found');
  const { id, token } = await newParent();
  const eve = await tokenFor('eve', token);
  const { json } = await api.post(`/agents/${api.agentId}/threads`, { token: eve, body: { userId: 'eve' } });
  const kept = await attach('a.png', PNG, eve, json.thread.id);
  const links = [await linkTo(kept, eve), await linkTo(kept, token)];
  expect((await Promise.all(links.map((link) => fetch(link)))).map(({ status }) => status)).toEqual([200, 200]);
  await api.access.revokeToken(id);
  for (const link of links) {
    const isGone = async () => (await fetch(link)).status === 404;
    await eventually(isGone, { what: 'the link has stopped' });
  }
});

test('a link stops when the token that made it loses the Agent', async () => {
  const { id, token } = await newParent([api.agentId, await api.newAgent()]);
  const eve = await tokenFor('eve', token);
  const { json } = await api.post(`/agents/${api.agentId}/threads`, { token: eve, body: { userId: 'eve' } });
  const fileId = await attach('a.png', PNG, eve, json.thread.id);
  const links = [await linkTo(fileId, eve), await linkTo(fileId, token)];
  await api.access.updateToken(id, { removeAgentIds: [api.agentId] });
  for (const link of links) {
    const isGone = async () => reasonOf(await fetch(link)) === '403 agent_forbidden';
    await eventually(isGone, { what: 'the link has stopped' });
  }
});

test('requests to links count for the user who made them, and wrong ones for their address', async () => {
  const settings = {
    BROWSER_TOKEN_KEYS: KEYS,
    RATE_LIMIT_PER_BROWSER_USER: 5,
    RATE_LIMIT_PER_PERSON_TOKEN: 4,
  } as const;
  const limited = await ApiUnderTest.start({ settings });
  const { organizationId, agentId } = limited;
  const wanted = { kind: 'service', organizationId, agentIds: [agentId], name: 'app' } as const;
  const { token: service } = await limited.access.mintToken(wanted);
  const body = { userId: 'ada', verbs: ['read'] };
  const { json: minted } = await limited.post('/browser-tokens', { token: service, body });
  const { json } = await limited.post(`/agents/${agentId}/threads`, { token: service, body: { userId: 'ada' } });
  const file = { name: 'a.png', contentType: 'image/png', contentBase64: PNG };
  const fileId = fileIdOf(await limited.post(`/threads/${json.thread.id}/files`, { token: service, body: file }));
  const { json: link } = await limited.get(`/files/${fileId}/link`, {
    token: (minted as unknown as { token: string }).token,
  });
  const { url } = link as unknown as { url: string };
  const statusesOf = async (of: string, times: number) => {
    const statuses: number[] = [];
    for (let i = 0; i < times; i++) statuses.push((await fetch(of)).status);
    return statuses;
  };
  // The user has already sent one request, for the link.
  expect(await statusesOf(url, 5)).toEqual([200, 200, 200, 200, 429]);
  expect(await statusesOf(`${new URL(url).origin}/file-links/a.b.c`, 5)).toEqual([404, 404, 404, 404, 429]);
  await limited.stop();
});
