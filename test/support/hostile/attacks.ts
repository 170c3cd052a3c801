import { setTimeout as sleep } from 'node:timers/promises';
import { makeSessionSecrets, makeToken } from '#access';
import { docxOf } from '#testing';
import { call, stallBody, type Answered } from './client.ts';
import type { HOSTILE_SCRIPTS } from './scripts.ts';

/** What the hostile tenant knows. */
export interface Target {
  organizationId: string;
  /** Of all pods. */
  baseUrls: string[];
  /** Some for each attack, in turns, so that the limit of a token lets each row of the table happen. */
  tokens: string[][];
  /** Agents of the tenant by the names that attacks have for them. */
  agents: Record<HostileAgent, string>;
  /** A file whose bytes have disappeared. */
  lostFileId: string;
  /** The session of an operator. The cookie was read through another port of the host, the key is the operator's own. */
  session: { cookie: string; pageKey: string };
}

export type HostileAgent = 'files' | 'long' | 'endless' | 'slow' | 'nosy' | 'grabbing';

/** The target of one attempt: by a token, and from an address of its own. */
export type Aim = Omit<Target, 'tokens'> & { token: string; from: string };

/** A status, or who was answered and the status, where several kinds of requests belong to one attack. */
export type Outcome = number | `${string} ${number}`;

export interface Attack {
  /** What the attack is called in test results. */
  name: string;
  /** When it begins first, and how often. Milliseconds. Default: at once. */
  afterMs?: number;
  everyMs: number;
  /** The outcomes that show that it was tried. Each must come. */
  tried: readonly Outcome[];
  /** What else it may be answered. */
  also: readonly Outcome[];
  /** The result of a tool call, or the error of a Run, that shows how it ended. Must come. */
  ending?: { agent: HostileAgent; text: RegExp };
  /** Resolves with all answers of the API that it got. */
  begin: (target: Aim) => Promise<Answered[]>;
}

const MEBIBYTE = 1024 * 1024;
const LARGEST_BODY = 8 * MEBIBYTE;
const STALLED = 150;
/** They are opened in so many groups, one after the other. */
const GROUPS = 15;
const NEXT_GROUP_MS = 80;
const STALL_MS = 3_000;
/** A quarter of 160 Runs, every quarter of 7 s. */
const LONG_RUNS = 40;
const RANDOM_TOKENS = 100;

const DEEP = Buffer.alloc(LARGEST_BODY, '[');
const MANY_KEYS = Buffer.from(`{${keys()}"k":1}`);
const STALLING = Buffer.concat([
  Buffer.from('{"events":[{"type":"user_message","text":"'),
  Buffer.alloc(LARGEST_BODY - 100, 'x'),
]);
/** 92 KB that unpack to 60 MB. */
const BOMB = Buffer.from(docxOf(`<w:p>${'<w:br '.repeat((60 * MEBIBYTE) / 6)}</w:p>`)).toString('base64');

function keys(): string {
  let text = '';
  for (let i = 0; text.length < LARGEST_BODY - 100; i++) text += `"${i.toString(36)}":0,`;
  return text;
}

/** Not while stalled bodies hold the tenant's share of bytes. */
const RUN = { afterMs: 4_500, everyMs: 7_000, tried: [201], also: [503] };

export const ATTACKS: readonly Attack[] = [
  {
    ...RUN,
    name: 'edit with a huge result',
    ending: { agent: 'files', text: /1572864000 bytes/ },
    begin: asking('files', 'growing'),
  },
  {
    ...RUN,
    name: 'path of 300,000 characters',
    ending: { agent: 'files', text: /longer than 512 characters/ },
    begin: asking('files', 'longPath'),
  },
  {
    ...RUN,
    name: 'input nested 3,000 deep',
    ending: { agent: 'files', text: /50,000 parts and 128 levels/ },
    begin: asking('files', 'deepInput'),
  },
  {
    ...RUN,
    name: 'DOCX that unpacks to 60 MB',
    tried: [200],
    also: [201, 503],
    ending: { agent: 'files', text: /It is broken, or not what it seems/ },
    begin: askAboutDocument,
  },
  {
    ...RUN,
    name: 'tool server with endless pages',
    ending: { agent: 'endless', text: /^tool_server_misconfigured$/ },
    begin: asking('endless', 'longPath'),
  },
  {
    ...RUN,
    name: 'schema that takes for ever to check',
    ending: { agent: 'slow', text: /^done$/ },
    begin: asking('slow', 'slowSchema'),
  },
  {
    ...RUN,
    name: 'stdio server that reads all it can',
    ending: { agent: 'nosy', text: /"found":\[\]/ },
    begin: asking('nosy', 'nosy'),
  },
  {
    ...RUN,
    name: 'manifest that names DATABASE_URL and /etc/passwd',
    // The agent is not ready.
    tried: [409],
    begin: asking('grabbing', 'nosy'),
  },
  { name: 'stalled bodies of 8 MiB', everyMs: 7_000, tried: [503], also: [408], begin: stallBodies },
  {
    name: 'deep bodies and bodies with many keys',
    everyMs: 2_500,
    tried: [400],
    also: [503],
    begin: sendLargeBodies,
  },
  { name: 'long Runs for every slot', everyMs: 1_750, tried: [201], also: [503], begin: queueLongRuns },
  {
    name: 'random tokens and session cookies',
    everyMs: 2_000,
    tried: ['token 401', 'token 429', 'session 401', 'session 429'],
    also: [],
    begin: guessTokens,
  },
  {
    name: 'stolen cookie, and one from a sibling domain',
    everyMs: 2_000,
    tried: ['thief 401', 'operator 200'],
    also: [],
    begin: useCookies,
  },
  { name: 'file whose bytes disappeared', everyMs: 2_000, tried: [410], also: [], begin: readLostFile },
];

const pick = ({ baseUrls }: Aim): string => baseUrls[Math.floor(Math.random() * baseUrls.length)]!;

function post(target: Aim, path: string, body: unknown): Promise<Answered> {
  const headers = { authorization: `Bearer ${target.token}` };
  const { from } = target;
  return call({ url: `${pick(target)}${path}`, from, method: 'POST', headers, body: JSON.stringify(body) });
}

function newThread(target: Aim, agentId: string, text: string): Promise<Answered> {
  const input = { type: 'user.message', content: [{ type: 'text', text }] };
  return post(target, `/agents/${agentId}/threads`, { userId: 'hostile', input });
}

function asking(agent: HostileAgent, script: keyof typeof HOSTILE_SCRIPTS): Attack['begin'] {
  return async (target) => [await newThread(target, target.agents[agent], `script: ${script} x`)];
}

async function askAboutDocument(target: Aim): Promise<Answered[]> {
  const created = await post(target, `/agents/${target.agents.files}/threads`, { userId: 'hostile' });
  if (created.status !== 201) return [created];
  const { thread } = JSON.parse(created.text) as { thread: { id: string } };
  const file = { name: 'bomb.docx', contentType: 'application/octet-stream', contentBase64: BOMB };
  const attached = await post(target, `/threads/${thread.id}/files`, file);
  const events = [{ type: 'user_message', text: 'script: document x' }];
  return [created, attached, await post(target, `/threads/${thread.id}/events`, { events })];
}

function stallBodies(target: Aim): Promise<Answered[]> {
  const { token, from, agents } = target;
  const stall = async (_: unknown, i: number): Promise<Answered> => {
    await sleep((i % GROUPS) * NEXT_GROUP_MS);
    const url = `${pick(target)}/agents/${agents.files}/threads`;
    return stallBody({ url, from, token, body: STALLING, forMs: STALL_MS });
  };
  return Promise.all(Array.from({ length: STALLED }, stall));
}

function sendLargeBodies(target: Aim): Promise<Answered[]> {
  const { token, from, agents } = target;
  const headers = { authorization: `Bearer ${token}` };
  const url = `${pick(target)}/agents/${agents.files}/threads`;
  const bodies = [DEEP, MANY_KEYS, DEEP, MANY_KEYS];
  return Promise.all(bodies.map((body) => call({ url, from, method: 'POST', headers, body })));
}

async function queueLongRuns(target: Aim): Promise<Answered[]> {
  const answers: Answered[] = [];
  for (let i = 0; i < LONG_RUNS / 4; i++) {
    const four = Array.from({ length: 4 }, () => newThread(target, target.agents.long, 'script: long x'));
    answers.push(...(await Promise.all(four)));
  }
  return answers;
}

function guessTokens(target: Aim): Promise<Answered[]> {
  const url = pick(target);
  const { from } = target;
  const asCaller = () => {
    const headers = { authorization: `Bearer ${makeToken('person')}` };
    return call({ who: 'token', url: `${url}/threads/${'0'.repeat(26)}`, from, headers });
  };
  const asOperator = () => {
    const { id, pageKey } = makeSessionSecrets();
    const headers = { cookie: `spool_session=${id}`, 'spool-page-key': pageKey };
    return call({ who: 'session', url: queueOf(url), from, headers });
  };
  return Promise.all(Array.from({ length: RANDOM_TOKENS }, (_, i) => (i % 2 === 0 ? asCaller() : asOperator())));
}

/** The thief has no key (401). The operator has a second cookie, and is let in (200). */
function useCookies(target: Aim): Promise<Answered[]> {
  const { from, session } = target;
  const url = queueOf(pick(target));
  const { id } = makeSessionSecrets();
  return Promise.all([
    call({ who: 'thief', url, from, headers: { cookie: session.cookie } }),
    call({
      ...{ who: 'operator', url, from },
      headers: { cookie: `spool_session=${id}; ${session.cookie}`, 'spool-page-key': session.pageKey },
    }),
  ]);
}

const queueOf = (baseUrl: string): string => new URL('/admin/v1/queue', baseUrl).href;

async function readLostFile(target: Aim): Promise<Answered[]> {
  const headers = { authorization: `Bearer ${target.token}` };
  return [await call({ url: `${pick(target)}/files/${target.lostFileId}/content`, from: target.from, headers })];
}
