import type { Message } from '#client';

/** A message that the service does not have yet. */
export interface Sending {
  text: string;
  /** The messages that were shown before. */
  known: ReadonlySet<string>;
  /** Null until the service has it. */
  runId: string | null;
}

/** The id of the message that is being sent, among those that are shown. */
export const SENDING_ID = 'sending';

/** Adds the message that is being sent, until the Thread has it: the stream may be faster than the response. */
export function withSending(messages: readonly Message[], sending: Sending | null): readonly Message[] {
  if (sending === null) return messages;
  const { text, known, runId } = sending;
  const isIt = (message: Message): boolean => message.runId === runId || textOf(message) === text;
  const isThere = messages.some((message) => message.role === 'user' && !known.has(message.id) && isIt(message));
  return isThere ? messages : [...messages, toMessage(text)];
}

const textOf = ({ parts }: Message): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');

/** Returns a message of the user that the service does not have. */
export function toMessage(text: string): Message {
  const part = { type: 'text', text, state: 'done' } as const;
  return { id: SENDING_ID, role: 'user', runId: null, createdAt: new Date().toISOString(), parts: [part] };
}
