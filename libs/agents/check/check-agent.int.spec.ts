import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { findFreePort, loadConfig } from '#platform';
import { agentManifestSchema, type AgentManifest } from '../manifest.ts';
import { closeAll, listeningOdd, oddServer } from '../mcp/mcp-servers.testing.ts';
import type { ModelChoice } from '../model/model-settings.ts';
import {
  anthropic,
  apiKey,
  env,
  KEY,
  manifestWith,
  openAi,
  refuses,
  stepsAndProviders,
  streams,
  type AskedRequest,
  type Respond,
} from '../model/provider.testing.ts';
import { checkAgent, wouldRun, type CheckRow } from './check-agent.ts';

const { start } = stepsAndProviders();
const ends: (() => Promise<void>)[] = [];
afterEach(async () => {
  await closeAll();
  await Promise.all(ends.splice(0).map((end) => end()));
});

const config = loadConfig({
  ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1',
  MANIFEST_VARIABLES: 'KEY',
  TOOL_SERVER_COMMANDS: process.execPath,
});
const checkLive = (manifest: AgentManifest): Promise<CheckRow[]> => checkAgent(manifest, { config, env, live: true });

type Kind = 'text' | 'tools' | 'results' | 'image';

function kindOf({ body }: AskedRequest): Kind {
  const messages = JSON.stringify(body['messages']);
  if (/"role":"tool"|"tool_result"/.test(messages)) return 'results';
  if (/"image_url"|"type":"image"/.test(messages)) return 'image';
  return body['tools'] === undefined ? 'text' : 'tools';
}

/** Returns a server that passes each part of the check, except for the given responses. */
const server =
  (answers: Record<Kind, Respond>, more: Partial<Record<Kind, Respond>> = {}): Respond =>
  (response, request) => {
    response.setHeader('x-ratelimit-remaining-requests', '59');
    response.setHeader('x-ratelimit-owner', KEY);
    ({ ...answers, ...more })[kindOf(request)](response, request);
  };

const [red, blue] = ['{"word":"red"}', '{"word":"blue"}'];
const chat = (pieces: object[], reason = 'stop', usage: object[] = [openAi.usage(40, 5)]): Respond =>
  streams([...pieces, openAi.finish(reason), ...usage]);
const CHAT: Record<Kind, Respond> = {
  text: chat([openAi.text('one '), openAi.text('two')]),
  tools: chat([openAi.call('spool_check', red, 0), openAi.call('spool_check', blue, 1)], 'tool_calls'),
  results: chat([openAi.text('done')]),
  image: chat([openAi.text('Red.')]),
};
const WITHOUT_USAGE: Record<Kind, Respond> = {
  text: chat([openAi.text('one '), openAi.text('two')], 'stop', []),
  tools: chat([openAi.call('spool_check', red, 0), openAi.call('spool_check', blue, 1)], 'tool_calls', []),
  results: chat([openAi.text('done')], 'stop', []),
  image: chat([openAi.text('Red.')], 'stop', []),
};

const messages = (blocks: object[], reason: string): Respond =>
  streams([anthropic.start(), ...blocks, ...anthropic.end(reason)]);
const MESSAGES: Record<Kind, Respond> = {
  text: messages([...anthropic.text(0, 'one '), ...anthropic.text(1, 'two')], 'end_turn'),
  tools: messages(
    [
      ...anthropic.thinking(0, 'Two calls.', 'signed'),
      ...anthropic.call(1, 'spool_check', red),
      ...anthropic.call(2, 'spool_check', blue),
    ],
    'tool_use',
  ),
  results: messages(anthropic.text(0, 'done'), 'end_turn'),
  image: messages(anthropic.text(0, 'red'), 'end_turn'),
};

const refusesField =
  (field: string, otherwise: Respond): Respond =>
  (response, request) =>
    (field in request.body ? refuses(400, error(`Unknown parameter: ${field}`)) : otherwise)(response, request);

const error = (message: string) => ({ error: { message, type: 'invalid_request_error' } });
const THINKS = { thinkingTokens: 1_024, maxOutputTokens: 4_000 };

const GOOD = {
  ...{ settings: 'works', text: 'works', streaming: 'works', tools: 'works', 'parallel tools': 'works' },
  ...{ 'tool results': 'works', images: 'not known', usage: 'works', reasoning: 'not known', limits: 'works' },
  protocol: 'works',
};
/** Without text, nothing else is checked. */
const NO_TEXT = {
  ...{ text: 'does not work', streaming: 'not known', tools: 'not known', 'parallel tools': 'not known' },
  ...{ 'tool results': 'not known', usage: 'not known', protocol: 'not known' },
};
const NO_TOOLS = { tools: 'does not work', 'parallel tools': 'not known', 'tool results': 'not known' };

interface Case {
  respond: Respond;
  model?: Partial<ModelChoice>;
  states?: Partial<Record<keyof typeof GOOD, string>>;
  runs?: boolean;
  requests?: number;
  /** Matches the detail of one row. */
  says?: RegExp;
}

describe('checking an agent with its provider', () => {
  it.each<[string, Case]>([
    ['a good server of OpenAI’s protocol', { respond: server(CHAT), says: /x-ratelimit-remaining-requests: 59\./ }],
    [
      'one that takes images',
      { respond: server(CHAT), model: { images: true }, states: { images: 'works' }, requests: 4 },
    ],
    [
      'one that takes an image and does not see it',
      {
        respond: server(CHAT, { image: chat([openAi.text('I see nothing.')]) }),
        model: { images: true },
        states: { images: 'does not work' },
        requests: 4,
      },
    ],
    [
      'a good server of Anthropic’s protocol',
      {
        respond: server(MESSAGES),
        model: { provider: 'anthropic', settings: THINKS },
        states: { images: 'works', reasoning: 'works' },
        requests: 4,
        says: /An answer has at most 4000 tokens/,
      },
    ],
    [
      'one that refuses the key',
      {
        respond: server(CHAT, { text: refuses(401, error(`Incorrect API key: ${KEY}`)) }),
        states: NO_TEXT,
        runs: false,
        requests: 1,
        says: /refused the agent’s credential.*Incorrect API key: \[key\]/,
      },
    ],
    [
      'one that is not at this URL',
      {
        respond: server(CHAT, { text: refuses(404, '404 page not found') }),
        states: NO_TEXT,
        runs: false,
        requests: 1,
        says: /POST http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions: HTTP 404 404 page not found\. Check model\.baseUrl: /,
      },
    ],
    [
      'one that refuses tools',
      {
        respond: server(CHAT, { tools: refuses(400, error('m-1 does not support tools')) }),
        states: NO_TOOLS,
        runs: false,
        requests: 2,
        says: /HTTP 400 .*does not support tools/,
      },
    ],
    [
      'one that refuses the results of tools',
      {
        respond: server(CHAT, { results: refuses(422, error('No call has this id')) }),
        states: { 'tool results': 'does not work' },
        runs: false,
        says: /No call has this id/,
      },
    ],
    [
      'one without usage',
      { respond: server(WITHOUT_USAGE), states: { usage: 'does not work' }, says: /Spool estimates them/ },
    ],
    [
      'one that makes one call an answer',
      {
        respond: server(CHAT, { tools: chat([openAi.call('spool_check', red)], 'tool_calls') }),
        states: { 'parallel tools': 'does not work' },
      },
    ],
    [
      'one that writes of calls instead of making them',
      { respond: server(CHAT, { tools: chat([openAi.text(red)]) }), states: NO_TOOLS, requests: 2 },
    ],
    [
      'one that ignores the schema of a tool',
      {
        respond: server(CHAT, { tools: chat([openAi.call('spool_check', '{"w":1}')], 'tool_calls') }),
        states: { tools: 'does not work', 'parallel tools': 'does not work' },
      },
    ],
    [
      'one that sends its text in one piece',
      { respond: server(CHAT, { text: chat([openAi.text('one two')]) }), states: { streaming: 'does not work' } },
    ],
    [
      'one that has no text',
      {
        respond: server(CHAT, { text: chat([]) }),
        states: NO_TEXT,
        runs: false,
        requests: 1,
      },
    ],
    [
      'one that thinks until the tokens of the check are used up',
      {
        respond: server(CHAT, { text: chat([openAi.delta({ reasoning_content: 'Hm.' })], 'length') }),
        states: { text: 'not known', streaming: 'not known' },
        says: /used up the tokens of this check/,
      },
    ],
    [
      'one that reports the tokens of the input only',
      {
        respond: server({
          ...WITHOUT_USAGE,
          text: chat([openAi.text('one '), openAi.text('two')], 'stop', [openAi.usage(40, 0)]),
        }),
        states: { usage: 'does not work' },
        says: /does not report tokens of output/,
      },
    ],
    [
      'one whose limit of requests ends the check',
      {
        respond: server(CHAT, { tools: refuses(429, error('Slow down')) }),
        states: { ...NO_TOOLS, tools: 'not known' },
        requests: 2,
      },
    ],
    [
      'one that sends more than its protocol has',
      {
        respond: server(CHAT, { results: chat([{ hello: 1 }, openAi.text('done')]) }),
        says: /differ from their protocol: an unknown part \(choices\)/,
      },
    ],
    [
      'one that refuses a field',
      {
        respond: server(CHAT, { text: refusesField('stream_options', CHAT.text) }),
        requests: 4,
        says: /refused a part of the request.*set model\.quirks\.leaveOut: stream_options/,
      },
    ],
    [
      'one whose window nobody knows',
      {
        respond: server(CHAT),
        model: { contextTokens: undefined },
        states: { limits: 'not known' },
        says: /set contextTokens/,
      },
    ],
  ])('%s', async (_, { respond, model, states, runs = true, requests = 3, says = /./ }) => {
    const provider = await start(respond);
    const rows = await checkLive(manifestWith({ baseUrl: provider.url, apiKey, contextTokens: 32_000, ...model }));
    expect(statesOf(rows)).toEqual({ ...GOOD, ...states });
    expect(wouldRun(rows)).toBe(runs);
    expect(rows.map(({ detail }) => detail).join('\n')).toMatch(says);
    expect(JSON.stringify(rows)).not.toContain(KEY);
    expect(provider.asked).toHaveLength(requests);
    for (const { body } of provider.asked) expect(body['max_tokens']).toBeLessThanOrEqual(2_048);
  });

  it('sends reasoning back with the results of calls', async () => {
    const provider = await start(server(MESSAGES));
    await checkLive(manifestWith({ provider: 'anthropic', baseUrl: provider.url, apiKey, settings: THINKS }));
    const results = provider.asked.filter((request) => kindOf(request) === 'results');
    expect(results.map(({ body }) => JSON.stringify(body['messages']))).toEqual([expect.stringContaining('"signed"')]);
  });

  it('sends the tools of the agent that are not denied', async () => {
    const provider = await start(server(CHAT));
    const manifest = manifestWith({ baseUrl: provider.url, apiKey }, { tools: [{ pattern: '*', policy: 'deny' }] });
    await checkLive(manifest);
    await checkLive({ ...manifest, tools: [{ pattern: 'read_*', policy: 'allow' }, ...manifest.tools] });
    const names = provider.asked
      .filter((request) => kindOf(request) === 'tools')
      .map(({ body }) => (body['tools'] as { function: { name: string } }[]).map((tool) => tool.function.name));
    expect(names).toEqual([['spool_check'], ['read_file', 'spool_check']]);
  });
});

describe('checking the tool servers of an agent', () => {
  it('names the tools of a working server, and says why another one fails', async () => {
    const provider = await start(server(CHAT));
    const { port } = await listeningOdd({ JOURNAL: oddServer().journal }, await findFreePort());
    const servers = [
      { name: 'good', url: `http://127.0.0.1:${port}/` },
      { name: 'optional', url: `http://127.0.0.1:${await findFreePort()}/`, required: false },
    ];
    const tools = [{ pattern: 'good__misspelled', policy: 'deny' as const }];
    const manifest = manifestWith({ baseUrl: provider.url, apiKey }, { toolServers: servers, tools });
    const rows = await checkLive(manifest);
    // The other server may have a tool that matches.
    expect(rows.slice(-2)).toEqual([
      expect.objectContaining({
        check: 'tool server good',
        state: 'works',
        detail: expect.stringContaining('good__') as string,
      }),
      {
        ...{ check: 'tool server optional', state: 'does not work', needed: false },
        detail: expect.stringMatching(/^Cannot connect to the tool server optional\. .*ECONNREFUSED/) as string,
      },
    ]);
    expect(wouldRun(rows)).toBe(true);
    const required = { ...manifest, toolServers: manifest.toolServers.map((one) => ({ ...one, required: true })) };
    expect(wouldRun(await checkLive(required))).toBe(false);
    const alone = await checkLive({ ...manifest, toolServers: manifest.toolServers.slice(0, 1) });
    expect(alone.at(-1)).toEqual({
      ...{ check: 'tool patterns', state: 'does not work', needed: false },
      detail: 'No tool matches the pattern good__misspelled (deny).',
    });
  });

  it('says what the program of a tool server wrote before it ended', async () => {
    const provider = await start(server(CHAT));
    const args = ['-e', 'console.error("FATAL: WEATHER_API_KEY is not set"); process.exit(1)'];
    const toolServers = [{ name: 'weather', command: process.execPath, args }];
    const rows = await checkLive(manifestWith({ baseUrl: provider.url, apiKey }, { toolServers }));
    expect(rows.at(-1)).toMatchObject({
      ...{ check: 'tool server weather', state: 'does not work' },
      detail: expect.stringMatching(
        /exit status 1 before it answered\. Its last lines .*: FATAL: WEATHER_API_KEY is not set/,
      ) as string,
    });
  });

  it('says which tools are left out', async () => {
    const large = { type: 'object', description: 'x'.repeat(65_536) };
    const url = await listing([
      { name: 'small', inputSchema: { type: 'object' } },
      { name: 'large', inputSchema: large },
    ]);
    const manifest = { name: 'Echo', harness: { name: 'model' }, toolServers: [{ name: 'web', url }] };
    const provider = await start(server(CHAT));
    const { model } = manifestWith({ baseUrl: provider.url, apiKey });
    const rows = await checkLive(agentManifestSchema.parse({ ...manifest, model }));
    expect(rows.at(-1)?.detail).toMatch(/^Its tools: web__small\. Left out: The input schema of web__large is larger/);
  });

  it('calls no provider and no server if the agent would not run anyway', async () => {
    const provider = await start(server(CHAT));
    const model = { baseUrl: provider.url, apiKey: { env: 'OTHER' } };
    const rows = await checkLive(manifestWith(model, { toolServers: [{ name: 'files', command: 'npx' }] }));
    expect(rows).toEqual([
      expect.objectContaining({ state: 'does not work', detail: expect.stringContaining('model.apiKey: ') as string }),
      expect.objectContaining({
        state: 'does not work',
        detail: expect.stringContaining('toolServers.0.command: ') as string,
      }),
    ]);
    expect([wouldRun(rows), provider.asked]).toEqual([false, []]);
  });

  it('calls no provider for a harness without a model', async () => {
    expect(statesOf(await checkLive(agentManifestSchema.parse({ name: 'Echo', harness: { name: 'echo' } })))).toEqual({
      settings: 'works',
    });
  });
});

/** Starts an MCP server with these tools for the test, and returns its address. */
async function listing(tools: object[]): Promise<string> {
  const http = createServer((request, response) => {
    void text(request).then((body) => {
      const { id, method, params } = JSON.parse(body || '{}') as JsonRpc;
      if (id === undefined) return response.writeHead(request.method === 'POST' ? 202 : 405).end();
      const ready = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: INFO };
      const result = method === 'initialize' ? ready : { tools };
      return response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  await once(http.listen(0, '127.0.0.1'), 'listening');
  ends.push(async () => {
    http.closeAllConnections();
    await once(http.close(), 'close');
  });
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}/`;
}

interface JsonRpc {
  id?: number;
  method?: string;
  params?: { protocolVersion?: string };
}

const INFO = { name: 'listing', version: '1' };

function statesOf(rows: readonly CheckRow[]): Record<string, string> {
  return Object.fromEntries(rows.map(({ check, state }) => [check, state]));
}
