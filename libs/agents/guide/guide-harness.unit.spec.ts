import type { StepContext, StepEvent, ToolContext, TranscriptMessage } from '../harness.ts';
import { agentManifestSchema } from '../manifest.ts';
import { roomWithoutEnd } from '../room.testing.ts';
import { guideHarness } from './guide-harness.ts';
import { GUIDE_TOOLS } from './guide-tools.ts';
import { TOPICS } from './guide-topics.ts';

const RUN_ID = '01ARZ3NDEKTSV4RRFFQ69G5FAV';
const RETRY_ID = '01ARZ3NDEKTSV4RRFFQ69G5FAW';

/** A Thread with the guide: each call of `run` plays a Run, whose tools are the real ones. */
class Conversation {
  private readonly transcript: TranscriptMessage[] = [];
  private runId = RUN_ID;
  readonly artifacts: { name: string; text: string }[] = [];
  private readonly files = [
    { fileId: 'F', path: 'attachments/a.pdf', mimeType: 'application/pdf', size: 12, readOnly: true },
  ];

  say(text: string, fileIds: string[] = []): this {
    this.transcript.push({ role: 'user', text, fileIds });
    return this;
  }

  retry(): this {
    this.runId = RETRY_ID;
    return this;
  }

  /** Plays steps until the Run ends, and returns what was said and called. `decide` answers for tools that ask. */
  async run(decide: 'ok' | 'refused' = 'ok'): Promise<string[]> {
    const said: string[] = [];
    for (;;) {
      const events: StepEvent[] = [];
      for await (const event of guideHarness().step(this.context())) events.push(event);
      const message = events.find((event) => event.type === 'message')!;
      const deltas = events.flatMap((event) => (event.type === 'text' ? [event.text] : []));
      expect(deltas.join('')).toBe(message.text);
      const thinking = events.some(({ type }) => type === 'thinking') ? 'thinks; ' : '';
      const calls = message.toolCalls.map(({ toolName }) => toolName);
      said.push(`${thinking}${message.text.split('\n')[0]}${calls.length > 0 ? ` [${calls.join(' ')}]` : ''}`);
      const toolCalls = message.toolCalls.map((call, i) => ({ ...call, toolCallId: `${i}` }));
      this.transcript.push({ role: 'assistant', text: message.text, toolCalls } as never);
      for (const { toolName, toolInput, toolCallId } of toolCalls) {
        const tool = GUIDE_TOOLS.find(({ name }) => name === toolName)!;
        const outcome = tool.policy === 'ask' ? decide : 'ok';
        const result = outcome === 'ok' ? (await tool.execute(toolInput, this.context() as never)).text : 'Refused.';
        this.transcript.push({ role: 'tool', toolCallId, toolName, outcome, result } as never);
      }
      if (calls.length === 0) return said;
    }
  }

  private context(): StepContext & Pick<ToolContext, 'saveArtifact'> {
    return {
      ...{ agentId: RUN_ID, threadId: RUN_ID, runId: this.runId, attempt: 1, userId: 'ada' },
      manifest: agentManifestSchema.parse({ name: 'guide', harness: { name: 'guide' } }),
      ...{ transcript: this.transcript, tools: GUIDE_TOOLS },
      files: { list: () => Promise.resolve(this.files), read: () => Promise.reject(new Error('It is not read.')) },
      runTask: () => Promise.reject(new Error('There is no task pool.')),
      ...roomWithoutEnd(),
      signal: new AbortController().signal,
      saveArtifact: ({ name, bytes }) => {
        this.artifacts.push({ name, text: new TextDecoder().decode(bytes) });
        return Promise.resolve({ fileId: 'A' });
      },
    };
  }
}

test('the tour thinks, looks up two topics, asks, and writes a file', async () => {
  const conversation = new Conversation().say('Show me what you can do');
  expect(await conversation.run()).toEqual([
    'thinks; I look up two topics. [look_up look_up]',
    expect.stringMatching(/^I have read both\. .+ \[write_page\]$/),
    expect.stringMatching(/^Done: the file `spool-on-one-page.md`/),
  ]);
  expect(conversation.artifacts).toEqual([
    { name: 'spool-on-one-page.md', text: expect.stringMatching(/^# Spool\n\nA \*\*Thread\*\*/) as string },
  ]);
});

test('the tour writes nothing if the call is rejected', async () => {
  const conversation = new Conversation().say('show me');
  expect((await conversation.run('refused')).at(-1)).toMatch(/^You rejected the call/);
  expect(conversation.artifacts).toEqual([]);
});

test('an error fails each attempt of its Run, and a retry continues after the stored tool call', async () => {
  const conversation = new Conversation().say('Show an error');
  await expect(conversation.run()).rejects.toMatchObject({ code: 'provider_unavailable' });
  await expect(conversation.run()).rejects.toMatchObject({ code: 'provider_unavailable' });
  expect(await conversation.retry().run()).toEqual([expect.stringMatching(/^The retry worked/)]);
});

test.each([
  ['How do approvals work?', 'Approvals'],
  ['what happens when a worker is KILLED', 'Crashes and retries'],
  ['Can I reload the page?', 'Streams'],
  ['Which LLMs do you support?', 'Agents'],
  ['What is Spool', 'Threads and Runs'],
])('explains the topic of: %s', async (question, title) => {
  const [asked, answer] = await new Conversation().say(question).run();
  expect(asked).toBe('thinks;  [look_up]');
  expect(answer).toBe(`## ${title}`);
});

test.each([
  ['Hello', 'Hello! I am the guide: a **script**, not a model. I know Spool, and nothing else.'],
  ['Write me a poem about the sea', expect.stringContaining('I am a script, not a model, and have no answer to this.')],
  ['Tell me a long story', expect.stringContaining('You can stop me at any time.')],
])('says that it is a script, or what it does: %s', async (message, expected) => {
  expect(await new Conversation().say(message).run()).toEqual([expected]);
});

test('lists the files that came with a message', async () => {
  const conversation = new Conversation().say('Read this', ['F']);
  expect(await conversation.run()).toEqual([expect.stringContaining('I got your files.')]);
});

test('every topic can be looked up, and is found by its name', () => {
  const found = TOPICS.map(({ name }) => TOPICS.find(({ pattern }) => pattern.test(name))?.name);
  expect(found).toEqual(TOPICS.map(({ name }) => name));
});

test('unknown settings are refused', () => {
  const manifest = agentManifestSchema.parse({ name: 'guide', harness: { name: 'guide', pause: 1 } });
  expect(guideHarness().checkSettings(manifest)).toMatchObject([{ path: ['harness', 'pause'] }]);
});
