/** A typed text: a message, a command of the chat, or an unknown command. */
export type Input =
  | { type: 'message'; text: string }
  | { type: 'command'; name: ChatCommand; rest: string }
  | { type: 'unknown'; word: string };

export const CHAT_COMMANDS = {
  stop: ['/stop', 'stop the answer; Ctrl+C does the same'],
  retry: ['/retry', 'try a failed or stopped answer again'],
  file: ['/file PATH', 'attach a file to the next message'],
  save: ['/save NAME [PATH]', 'save a file of this chat; never overwrites a file'],
  new: ['/new', 'start a new chat'],
  help: ['/help', 'list these commands'],
  quit: ['/quit', 'exit; Ctrl+D does the same'],
} as const;

export type ChatCommand = keyof typeof CHAT_COMMANDS;

const isCommand = (word: string): word is ChatCommand => Object.hasOwn(CHAT_COMMANDS, word);

/** Parses a typed text. Several lines are a message, because they were pasted. `//TEXT` is a message that begins with a slash. */
export function parseInput(text: string): Input {
  if (!text.startsWith('/') || text.includes('\n')) return { type: 'message', text };
  if (text.startsWith('//')) return { type: 'message', text: text.slice(1) };
  const [, word = '', rest = ''] = /^\/(\S*)\s*(.*?)\s*$/.exec(text) ?? [];
  return isCommand(word) ? { type: 'command', name: word, rest } : { type: 'unknown', word: `/${word}` };
}

/** Parses the reply to an approval. Returns null if it is neither yes nor no. */
export function parseDecision(text: string): 'allow_once' | 'reject_once' | null {
  if (/^\s*y(es)?\s*$/i.test(text)) return 'allow_once';
  return /^\s*no?\s*$/i.test(text) ? 'reject_once' : null;
}

export function chatHelp(): string {
  const lines = Object.values(CHAT_COMMANDS).map(([usage, what]) => `  ${usage.padEnd(19)}${what}`);
  return [...lines, `  ${'//TEXT'.padEnd(19)}send a text that begins with a slash`].join('\n');
}
