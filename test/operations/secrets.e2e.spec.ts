import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import type { AgentManifestInput } from '#agents';
import { eventually } from '#testing';
import { createAcknowledged, getThread, readLog, send, type Caller } from '../support/client.ts';
import { endOf, PROTOCOLS, startModelSystem, type EndedRun, type ModelSystem } from '../support/model-system.ts';
import { SpoolCommand } from '../support/spool-command.ts';
import { TraceCollector } from '../support/trace-collector.ts';
import { oddServer, oddServerOverHttp, type ListeningServer, type ToolServerInput } from '../support/tool-servers.ts';

const SECRETS = {
  MODEL_KEY: 'sk-model-4f81c0d27b9e',
  WRONG_KEY: 'sk-wrong-93a7be50d1f6',
  WEB_AUTH: 'Bearer web-token-b60e27a94d3c',
  STDIO_SECRET: 'stdio-secret-7c15f8e3920a',
};
/** In a file, which the manifest names. */
const KEY_FILE = ['-----BEGIN KEY-----', 'a-line-of-"-9e02d84c71fb', '-----END KEY-----'].join('\n');
/** What must not get out: of `Bearer …` the part that is the secret, of the file its line as it is and in JSON. */
const VALUES = [...Object.values(SECRETS).map((value) => value.replace('Bearer ', '')), '-9e02d84c71fb'];

/**
 * What was said, which callers and models are told, and nobody who reads logs or traces. By which words a server refuses a call is
 * logged: they are for those who run it.
 */
const SAID = ['the-callers-words-51c0', 'the-models-words-8ad2', 'the-tools-input-e907', 'It failed with'];

const ALLOW_ALL: AgentManifestInput['tools'] = [{ pattern: '*', policy: 'allow' }];
const QUOTED = `Incorrect API key provided: ${SECRETS.MODEL_KEY}.`;
const quoting = (type: string) => ({
  body: { type: 'error', error: { type, message: QUOTED, code: null, param: SECRETS.MODEL_KEY } },
});
const headers = { 'x-received-key': SECRETS.MODEL_KEY };
const SCRIPTS = {
  'repeats-key': {
    steps: [
      {
        text: ['Never said.'],
        failures: [
          { status: 500, headers, ...quoting('api_error') },
          { errorEventAfterPieces: 1, ...quoting('overloaded_error') },
          { status: 401, headers, ...quoting('authentication_error') },
        ],
      },
    ],
  },
  'repeats-secrets': {
    steps: [
      {
        toolCalls: ['odd__env', 'key__env', 'odd__fail', 'odd__refuse', 'web__env', 'web__fail', 'web__refuse'].map(
          (name) => ({
            name,
            input: { given: SAID[2]! },
          }),
        ),
      },
      { text: [`${SAID[1]}:\n`, '{{toolResults}}'] },
    ],
  },
};

/**
 * Secrets of manifests, at servers that repeat whatever they are given; and, where only operators look, what was said and an
 * operator's session.
 */
describe('a secret that a manifest refers to', () => {
  let models: ModelSystem;
  let web: ListeningServer;
  let refusing: Server;
  let folder: string;
  let spool: SpoolCommand;
  let collector: TraceCollector;
  /** Of an operator who has signed in. */
  let session: string;
  /** All that callers were answered. */
  const answered: string[] = [];
  const runs = new Map<string, EndedRun>();

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'spool-secrets-'));
    await writeFile(join(folder, 'key'), `${KEY_FILE}\n`);
    web = await oddServerOverHttp({ SECRET: SECRETS.WEB_AUTH });
    refusing = createServer(({ headers }, response) => response.writeHead(403).end(`no: ${headers.authorization}`));
    refusing.listen(0, '127.0.0.1');
    await once(refusing, 'listening');
    collector = await TraceCollector.start();
    const tracing = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '100' };
    const env = { ...SECRETS, ...tracing, LOG_LEVEL: 'trace', MANIFEST_FILES: folder };
    models = await startModelSystem({ apiKey: SECRETS.MODEL_KEY, scripts: SCRIPTS, env });
    session = await signIn(models);
    const operators = { DATABASE_URL: models.system.databaseUrl, MANIFEST_VARIABLES: Object.keys(SECRETS).join(',') };
    spool = new SpoolCommand({ ...SECRETS, ...operators });
    const failing = `console.error(process.env.SECRET); throw new Error(process.env.SECRET)`;
    const auth = { Authorization: { env: 'WEB_AUTH' } };
    const inEnv = { SECRET: { env: 'STDIO_SECRET' } };
    const ofFile = { SECRET: { file: join(folder, 'key') } };
    const toolServers: ToolServerInput[] = [
      oddServer({ env: inEnv }).input,
      oddServer({ name: 'key', env: ofFile }).input,
      { name: 'web', url: web.url, headers: auth },
    ];
    const { port } = refusing.address() as AddressInfo;
    const refused: ToolServerInput = { name: 'web', url: `http://127.0.0.1:${port}/`, headers: auth };
    const dying: ToolServerInput = { name: 'odd', command: process.execPath, args: ['-e', failing], env: inEnv };
    await Promise.all(
      PROTOCOLS.map(async (protocol) => {
        const tools = ALLOW_ALL;
        const caller = await models.publish(protocol, { toolServers, tools });
        const limits = { maxLosses: 2 };
        await tell('repeats-secrets', protocol, caller);
        await tell('repeats-key', protocol, await models.publish(protocol));
        const model = { apiKey: { env: 'WRONG_KEY' } };
        await tell('hello', `${protocol}, wrong key`, await models.publish(protocol, { model }));
        await tell('hello', `${protocol}, refused`, await models.publish(protocol, { toolServers: [refused], limits }));
        await tell('hello', `${protocol}, dying`, await models.publish(protocol, { toolServers: [dying], limits }));
      }),
    );
  }, 120_000);

  afterAll(async () => {
    await models.stop();
    await collector.close();
    await web.close();
    refusing.close();
    await rm(folder, { recursive: true });
  });

  /** A Run of it, to its end, and all that callers can see of it. */
  async function tell(script: string, what: string, caller: Caller): Promise<void> {
    const { threadId, runId } = await createAcknowledged(caller, `script: ${script} ${what}\n${SAID[0]}`);
    runs.set(`${script} ${what}`, await endOf(caller, threadId));
    const paths = ['', '/runs', `/runs/${runId}`, '/files', '/events'].map((path) => `/threads/${threadId}${path}`);
    const answers = [...paths, `/agents/${caller.agentId}`].map(async (path) => {
      const { headers, body } = await send(caller, 'GET', path);
      return [[...headers], body];
    });
    answered.push(JSON.stringify([await Promise.all(answers), await readLog(caller, threadId)]));
    answered.push(JSON.stringify((await getThread(caller, threadId)).body));
  }

  it('is sent where it belongs, and repeated there: so it could get out', () => {
    const received = JSON.stringify(models.provider.requests.map(({ headers }) => headers));
    for (const key of [SECRETS.MODEL_KEY, SECRETS.WRONG_KEY]) expect(received).toContain(key);
    for (const protocol of PROTOCOLS) {
      const text = runs.get(`repeats-secrets ${protocol}`)!.finalOutput!.text;
      // Both servers have told their variables or headers, and of both what they say at a failure is there.
      expect(text.match(/"SECRET":"\*{3}"/g)!.length).toBeGreaterThanOrEqual(2);
      expect(text).toContain('"authorization":"***"');
      expect(text.match(/It failed with \*{3}\./g)).toHaveLength(2);
      expect(text.match(/\*{3} is no yyy/g)).toHaveLength(2);
    }
  });

  it('is nothing that the model is told', () => {
    const outputs = models.provider.requests.map(({ line, body }) => ({ name: line!, text: JSON.stringify(body) }));
    expect(placesOf('It failed with ***', outputs)).not.toEqual([]);
    expect(VALUES.flatMap((value) => placesOf(value, outputs))).toEqual([]);
  });

  it('fails a Run with the catalogue’s own words', () => {
    const failed = [...runs].flatMap(([what, { error }]) => (error === null ? [] : [[what, error.code]]));
    const expected = PROTOCOLS.flatMap((protocol) => [
      [`repeats-key ${protocol}`, 'provider_auth'],
      [`hello ${protocol}, wrong key`, 'provider_auth'],
      [`hello ${protocol}, refused`, 'tool_server_misconfigured'],
      [`hello ${protocol}, dying`, 'tool_server_unavailable'],
    ]);
    expect(Object.fromEntries(failed)).toEqual(Object.fromEntries(expected));
  });

  it('is nowhere in the database', async () => {
    const { pool } = models.system.database;
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_type = 'BASE TABLE' and table_schema not in ('pg_catalog', 'information_schema')`,
    );
    const dumps = await Promise.all(
      tables.map(async ({ name }) => {
        const { rows } = await pool.query<{ text: string }>(`select t::text as text from ${name} t`);
        return { name, text: rows.map(({ text }) => text).join('\n') };
      }),
    );
    // The references are: so the search finds what is there.
    expect(placesOf('MODEL_KEY', dumps)).toContain('public.agent_versions');
    expect(placesOf('It failed with ***', dumps)).toContain('public.events');
    expect(VALUES.flatMap((value) => placesOf(value, dumps))).toEqual([]);
  });

  /** What is for no operator's eyes. */
  const unsaid = (): string[] => [...VALUES, ...SAID, session, models.system.operatorToken, models.api.caller.token];

  it('is in no line that a process logs, at the lowest level, and neither is what was said', () => {
    const outputs = [
      { name: 'api', text: models.api.process.output() },
      { name: 'worker', text: models.worker.output() },
    ];
    expect(placesOf('A secret on standard error: ***', outputs)).toEqual(['worker']);
    expect(placesOf('Incorrect API key provided: [key].', outputs)).toEqual(['worker']);
    expect(placesOf('no: ***', outputs)).toEqual(['worker']);
    expect(unsaid().filter((value) => placesOf(value, outputs).length > 0)).toEqual([]);
  });

  it('is in no trace that is exported, and neither is what was said', async () => {
    const isWhole = (): boolean => collector.spans.filter(({ name }) => name === 'run').length >= runs.size;
    await eventually(isWhole, { what: 'all Runs are exported', timeoutMs: 30_000 });
    const outputs = [{ name: 'traces', text: collector.received }];
    expect(placesOf('odd__env', outputs)).toEqual(['traces']);
    expect(unsaid().filter((value) => placesOf(value, outputs).length > 0)).toEqual([]);
  });

  it('is in no answer that callers were given', () => {
    expect(answered.join('\n')).toContain('It failed with ***');
    const outputs = answered.map((text) => ({ name: text.slice(0, 200), text }));
    expect(VALUES.flatMap((value) => placesOf(value, outputs))).toEqual([]);
  });

  it('is in nothing that operators are shown, though their shell has it', async () => {
    const caller = await models.publish('anthropic', { name: 'shown' });
    const model = { provider: 'anthropic', name: 'scripted', apiKey: { env: 'WRONG_KEY' } };
    const changed = { name: 'shown', harness: { name: 'model' }, model };
    const literal = { ...changed, model: { ...model, apiKey: SECRETS.MODEL_KEY } };
    const apply = ['agent', 'apply', '--org', 'Testers', '-f', '-', '--dry-run', '--local'];
    const said = await Promise.all([
      spool.run(['agent', 'list', '--local']),
      spool.run(['agent', 'show', caller.agentId, '--local']),
      spool.run(['agent', 'show', caller.agentId, '--json', '--local']),
      spool.run(apply, { input: stringify(changed) }),
      spool.run(apply, { input: stringify(literal) }),
    ]);
    expect(said.map(({ code }) => code)).toEqual([0, 0, 0, 0, 2]);
    expect(said[1].out).toContain('"env": "MODEL_KEY"');
    expect(said[3].out).toMatch(/^-.*MODEL_KEY.*\n\+.*WRONG_KEY/m);
    const outputs = said.map(({ out, err }, i) => ({ name: `command ${i}`, text: out + err }));
    expect(VALUES.flatMap((value) => placesOf(value, outputs))).toEqual([]);
  });
});

/** Signs an operator in as the console does, and shows that it worked; answers what the cookie says. */
async function signIn({ api, system }: ModelSystem): Promise<string> {
  const { origin } = new URL(api.caller.baseUrl);
  const headers = { 'content-type': 'application/json', origin, 'spool-page-key': '' };
  const body = JSON.stringify({ token: system.operatorToken });
  const signedIn = await fetch(`${origin}/console/session`, { method: 'POST', headers, body });
  const cookie = signedIn.headers.getSetCookie()[0]!.split(';')[0]!;
  const { pageKey } = (await signedIn.json()) as { pageKey: string };
  const used = await fetch(`${origin}/admin/v1/overview`, { headers: { cookie, 'spool-page-key': pageKey } });
  expect([signedIn.status, used.status]).toEqual([200, 200]);
  return cookie.split('=')[1]!;
}

interface Output {
  name: string;
  text: string;
}

/** Where a text is, as it is or as bytes that PostgreSQL or a header shows in hexadecimal digits or base64. */
function placesOf(text: string, outputs: readonly Output[]): string[] {
  const bytes = Buffer.from(text);
  const forms = [text, bytes.toString('hex'), bytes.toString('base64').replace(/=+$/, '')];
  return outputs.filter((output) => forms.some((form) => output.text.includes(form))).map(({ name }) => name);
}
