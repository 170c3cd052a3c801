import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { text as readAll } from 'node:stream/consumers';

/** Whether a person can read a question and type a reply. */
export const canAsk = (): boolean => process.stdin.isTTY && process.stderr.isTTY;

/** Asks a question on the terminal. Every reply except yes is no. */
export async function ask(question: string): Promise<boolean> {
  const answer = await readLine(`${question} [y/N] `, process.stderr);
  return /^y(es)?$/i.test(answer.trim());
}

/** Reads one line from the terminal. Returns an empty line after Ctrl+D. */
export const askLine = (prompt: string): Promise<string> => readLine(prompt, process.stderr);

/** Reads a secret without showing it. Without a terminal, reads all of standard input. */
export async function readSecret(prompt: string): Promise<string> {
  if (!process.stdin.isTTY) return readAll(process.stdin);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const typed = readLine('', nowhere);
  // The prompt comes after readline has switched off the echo. Earlier input would be shown.
  process.stderr.write(prompt);
  const secret = await typed;
  process.stderr.write('\n');
  return secret;
}

async function readLine(prompt: string, output: NodeJS.WritableStream): Promise<string> {
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  // Ctrl+C ends the process, and Ctrl+D gives an empty reply.
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
