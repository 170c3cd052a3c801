import { postEvents, send, type Caller, type Run, type ThreadAnswer } from './client.ts';
import {
  scriptText,
  type ModelCall,
  type FakeProvider,
  type Point,
  type ToolName,
  type ToolUse,
} from './fake-provider.ts';

/** Where a Run can hang: at a model that is silent, amid its text, in a tool. */
export const PLACES: readonly { point: Point; tools: ToolName[] }[] = [
  { point: 'step asked', tools: [] },
  { point: 'half said', tools: ['lookup'] },
  { point: 'tool asked', tools: ['act'] },
];

export interface HangingRun {
  threadId: string;
  runId: string;
  /** Its call outside. */
  call: ModelCall | ToolUse;
}

/** A Thread whose Runs wait outside, until they are let go or stopped. */
export async function newThread({ agentId, ...caller }: Caller): Promise<string> {
  const { status, body } = await send<ThreadAnswer>({ agentId, ...caller }, 'POST', `/agents/${agentId}/threads`, {
    userId: 'tester',
  });
  if (status !== 201) throw new Error(`a Thread was not created: ${status}`);
  return body.thread.id;
}

/** The Run that a message makes. Throws unless it is acknowledged. */
export async function say(caller: Caller, threadId: string, text: string): Promise<Run> {
  const { status, body } = await postEvents(caller, threadId, { type: 'user_message', text });
  if (status !== 200) throw new Error(`a message was not accepted: ${status} ${JSON.stringify(body)}`);
  return (body as unknown as { events: [{ run: Run }] }).events[0].run;
}

/** A Run that has come to the place and stays there for ever. */
export async function hangAt(fakeProvider: FakeProvider, caller: Caller, place = PLACES[0]!): Promise<HangingRun> {
  const threadId = await newThread(caller);
  const hold = fakeProvider.hold(place.point, (call) => call.threadId === threadId);
  const { id: runId } = await say(caller, threadId, scriptText('hangs', { pieces: 4, pauseMs: 0, tools: place.tools }));
  return { threadId, runId, call: await hold.reached };
}
