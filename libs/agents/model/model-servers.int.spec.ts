import type { StepContext, StepEvent, Tool, TranscriptMessage } from '../harness.ts';
import type { ModelChoice } from './model-settings.ts';
import {
  contextWith,
  eventsOf,
  filesOf,
  manifestWith,
  openAi,
  refuses,
  stepsAndProviders,
  streams,
  testHarness,
  type AskedRequest,
  type Respond,
} from './provider.testing.ts';

const { start } = stepsAndProviders();

interface Sent {
  role: string;
  content: unknown;
  tool_call_id?: string;
  tool_calls?: { id: string }[];
  reasoning_content?: string;
  reasoning?: string;
}
const messagesOf = ({ body }: AskedRequest): Sent[] => body.messages as Sent[];

/** Returns why a strict server refuses a request, or false. */
type Demand = (request: AskedRequest) => string | false;

/** Like the template of Mistral's models: user and assistant alternate, apart from calls and results, and no user follows a result. */
const roles: Demand = (request) => {
  const messages = messagesOf(request).filter(({ role }) => role !== 'system');
  const turns = messages.filter(({ role, tool_calls: calls }) => role !== 'tool' && calls === undefined);
  const isWrong = turns.some(({ role }, i) => role !== ['user', 'assistant'][i % 2]);
  const unanswered = messages.some(({ role }, i) => role === 'user' && messages[i - 1]?.role === 'tool');
  return (isWrong || unanswered || messages.at(-1)?.role === 'assistant') && 'Conversation roles must alternate.';
};

const ids: Demand = (request) => {
  const all = messagesOf(request).flatMap(({ tool_call_id: id, tool_calls: calls = [] }) => [
    ...(id === undefined ? [] : [id]),
    ...calls.map((call) => call.id),
  ]);
  return all.some((id) => !/^[a-zA-Z0-9]{9}$/.test(id)) && 'Tool call id must be a-z, A-Z, 0-9, with a length of 9.';
};

const properties: Demand = ({ body }) => {
  const tools = (body.tools ?? []) as { function: { parameters: { properties?: object; anyOf?: unknown } } }[];
  const isWrong = tools.some(({ function: { parameters } }) => !parameters.properties || 'anyOf' in parameters);
  return isWrong && 'Invalid schema: object schema missing properties.';
};

/** Like DeepSeek: refuses a message with calls of this turn that lacks its reasoning. */
const reasoning =
  (field: 'reasoning_content' | 'reasoning'): Demand =>
  (request) => {
    const messages = messagesOf(request);
    const from = messages.findLastIndex(({ role }) => role === 'user');
    const isWrong = messages.some((one, i) => one.tool_calls !== undefined && (one[field] === 'Hm.') !== i > from);
    return isWrong && 'The thoughts are wrong.';
  };

const strict =
  (demands: readonly Demand[], answer: Respond): Respond =>
  (response, request) => {
    const message = demands.map((demand) => demand(request)).find((one) => one !== false);
    (message === undefined ? answer : refuses(400, { error: { message } }))(response, request);
  };

const hello = streams([openAi.text('Hello'), openAi.finish('stop')]);
const tool = (name: string, inputSchema: Tool['inputSchema']): Tool => ({
  ...{ name, title: name, description: name, policy: 'allow', idempotent: true, inputSchema },
  execute: () => Promise.reject(new Error('not here')),
});

const ID = '01ARZ3NDEKTSV4RRFFQ69G5FA';
const user = (text: string, ...fileIds: string[]): TranscriptMessage => ({ role: 'user', text, fileIds });
const said = (text: string): TranscriptMessage => ({ role: 'assistant', text, toolCalls: [] });
const called = (last: string, more: object = {}): TranscriptMessage[] => {
  const call = { toolCallId: ID + last, toolName: 'look' };
  return [
    { role: 'assistant', text: '', toolCalls: [{ ...call, title: 'Look', toolInput: {} }], ...more },
    { role: 'tool', ...call, outcome: 'ok', result: 'seen', fileIds: ['IMAGE'] },
  ];
};

const image = { fileId: 'IMAGE', path: 'artifacts/a.png', mimeType: 'image/png', size: 5, readOnly: true };
const harness = testHarness();
const step = (
  url: string,
  transcript: TranscriptMessage[],
  model: Partial<ModelChoice> = {},
  more: Partial<StepContext> = {},
) => {
  const manifest = manifestWith({ baseUrl: url, ...model });
  return eventsOf(harness.step(contextWith(manifest, { transcript, files: filesOf([image]), ...more })));
};

it('works with a server that requires alternating roles, short ids and properties, after a stop, a failure and an empty answer', async () => {
  const { url, asked } = await start(strict([roles, ids, properties], hello));
  const happened: TranscriptMessage[][] = [
    [user('stopped before the first word')],
    [user('failed')],
    [user('answered by nothing'), said('')],
    [user('stopped after a tool'), ...called('A')],
    [user('failed after two tools, with images', 'IMAGE'), ...called('B'), ...called('C')],
    [user('emptied after a tool'), ...called('D'), said(' ')],
    [user('stopped in the middle'), said('half')],
    [user('answered'), said('whole')],
  ];
  const tools = [tool('none', { type: 'object' }), tool('either', { type: 'object', anyOf: [{ required: ['a'] }] })];
  for (let i = 0; i <= happened.length; i++) {
    const transcript = [...happened.slice(0, i).flat(), user('And now?')];
    expect((await step(url, transcript, { images: true }, { tools })).at(-1)).toMatchObject({ text: 'Hello' });
    // A Run that continues or retries after the last event.
    if (i > 0)
      expect((await step(url, transcript.slice(0, -1), { images: true }, { tools })).at(-1)).toMatchObject({
        text: 'Hello',
      });
  }
  const last = asked.at(-2)!;
  for (const text of [...happened.flat().flatMap((one) => ('text' in one ? one.text.trim() : [])), 'seen', 'And now?'])
    expect(JSON.stringify(last.body)).toContain(text);
});

it.each(['reasoning_content', 'reasoning'] as const)(
  'gives %s back within the turn, after a restart too',
  async (field) => {
    const call = streams([
      openAi.delta({ [field]: 'H' }),
      openAi.delta({ [field]: 'm.' }),
      openAi.call('look', '{}'),
      openAi.finish('tool_calls'),
    ]);
    const { url, asked } = await start(strict([reasoning(field)], call));
    const continuationOf = (events: StepEvent[]): unknown => {
      const message = events.at(-1);
      // As it is after it was stored.
      return JSON.parse(JSON.stringify(message?.type === 'message' ? message.continuation : null));
    };
    const transcript = [user('Look!')];
    for (const last of ['A', 'B', 'C']) {
      const continuation = continuationOf(await step(url, transcript));
      transcript.push(...called(last, { continuation }));
    }
    // In another turn, the reasoning does not go back.
    await step(url, [...transcript, user('And now?')]);
    expect(messagesOf(asked.at(-2)!).filter((one) => one[field] === 'Hm.')).toHaveLength(2);
    expect(messagesOf(asked.at(-1)!).filter((one) => field in one)).toEqual([]);
  },
);

describe('a server that refuses a field by its name', () => {
  const refusing =
    (field: string, status = 422): Respond =>
    (response, request) => {
      const detail = [{ type: 'extra_forbidden', loc: ['body', field], msg: 'Extra inputs are not permitted' }];
      (field in request.body ? refuses(status, { detail }) : hello)(response, request);
    };
  const fieldsOf = (asked: AskedRequest[], field: string) => asked.map(({ body }) => field in body);

  it.each(['stream_options', 'temperature', 'reasoning_effort'])(
    'is asked once more without %s, and never again',
    async (field) => {
      const { url, asked } = await start(refusing(field));
      const model = { settings: { temperature: 0.5, reasoningEffort: 'low' as const } };
      for (const text of ['a', 'b'])
        expect((await step(url, [user(text)], model)).at(-1)).toMatchObject({ text: 'Hello' });
      expect(fieldsOf(asked, field)).toEqual([true, false, false]);
      expect(asked[1]!.body).toEqual({ ...asked[0]!.body, [field]: undefined });
      // Another version of the agent starts without learned quirks.
      await step(url, [user('c')], { settings: { ...model.settings, temperature: 0.6 } });
      expect(fieldsOf(asked, field)).toEqual([true, false, false, true, false]);
    },
  );

  it('never gets the field if the manifest leaves it out', async () => {
    const { url, asked } = await start(refusing('stream_options'));
    await step(url, [user('a')], { quirks: { leaveOut: ['stream_options'] } });
    expect(fieldsOf(asked, 'stream_options')).toEqual([false]);
  });

  it('fails the Run if the field cannot be left out', async () => {
    const { url, asked } = await start(refusing('messages', 400));
    await expect(step(url, [user('a')])).rejects.toMatchObject({ code: 'provider_rejected' });
    expect(asked).toHaveLength(1);
  });
});
