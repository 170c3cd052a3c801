import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';

/** Whether there is somebody to ask. */
export const canAsk = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

/** On the terminal. Everything but yes is no. */
export async function ask(question: string): Promise<boolean> {
  const answer = await readLine(`${question} [y/N] `, process.stderr);
  return /^y(es)?$/i.test(answer.trim());
}

/** Returns one line that is typed on the terminal. */
export const askLine = (prompt: string): Promise<string> => readLine(prompt, process.stderr);

/** What is typed or pasted is not shown. */
export async function readSecret(prompt: string): Promise<string> {
  if (!process.stdin.isTTY) return readAll(process.stdin);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const typed = readLine('', nowhere);
  // Only now: what comes before the terminal is told not to is shown by it.
  process.stderr.write(prompt);
  const secret = await typed;
  process.stderr.write('\n');
  return secret;
}

async function readLine(prompt: string, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  // Ctrl-C and Ctrl-D: an answer that does nothing.
  const given = new AbortController();
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  lines.once('close', () => given.abort());
  try {
    return await lines.question(prompt, { signal: given.signal });
  } catch {
    return '';
  } finally {
    lines.close();
  }
}
