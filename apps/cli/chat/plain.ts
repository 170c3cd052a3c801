import { text as readAll } from 'node:stream/consumers';
import { SpoolError, type Run, type Spool } from '#client';
import { CommandError, EXIT_INTERRUPTED } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { showControls, showInLine } from '../text.ts';
import type { Access } from './access.ts';

/** Sends standard input as one message, and writes the text of the answer to standard output. Throws CommandError and SpoolError. */
export async function chatPlainly(session: Session, access: Access, allowsAll: boolean): Promise<void> {
  const { client, agentId, userId, threadId } = access;
  if (process.stdin.isTTY) session.note('Type the message, and end it with Ctrl+D.');
  const text = (await readAll(process.stdin)).replace(/\r?\n$/, '');
  if (text.trim() === '') throw new CommandError('usage', 'Standard input has no message.');
  const isNew = threadId === null;
  const run = await (isNew ? client.agent(agentId).send(text, { userId }) : client.thread(threadId).send(text));
  const stop = (): void => {
    session.exitCode = EXIT_INTERRUPTED;
    client
      .thread(run.threadId)
      .interrupt(run.id)
      .catch((error: unknown) => session.note(`The Run continues: ${(error as Error).message}`));
  };
  process.once('SIGINT', stop);
  session.note(`Thread ${run.threadId}`);
  try {
    const answer = await answerOf(session, client, run, allowsAll);
    // A program gets the text as it is. A terminal would execute its control characters.
    await session.write(`${process.stdout.isTTY ? showControls(answer) : answer}\n`);
    await noteFiles(session, client, run);
  } catch (error) {
    if (!session.interrupted) throw error;
    session.note('Stopped.');
  } finally {
    process.off('SIGINT', stop);
  }
}

/** Decides the approvals of a Run until it ends. Returns the text of its answer. */
async function answerOf(session: Session, client: Spool, run: Run, allowsAll: boolean): Promise<string> {
  for (;;) {
    const answer = await run.answer();
    if (answer.status === 'completed') return answer.text;
    for (const { requestId, toolName, toolInput = {} } of answer.questions) {
      const call = showInLine(`${toolName} ${JSON.stringify(toolInput)}`);
      session.note(allowsAll ? `Allowed: ${call}` : `Rejected: ${call} (--yes allows all calls)`);
      const decision = allowsAll ? 'allow_once' : 'reject_once';
      await client.thread(run.threadId).decide(requestId, decision).catch(ignoreDecided);
    }
  }
}

const DECIDED: ReadonlySet<string> = new Set(['request_decided', 'request_not_pending']);

/** Ignores the conflict of a late decision, because another client can decide first or end the Run. */
export function ignoreDecided(error: unknown): void {
  const isDecided = error instanceof SpoolError && DECIDED.has(error.reason ?? '');
  if (!isDecided) throw error;
}

async function noteFiles(session: Session, client: Spool, run: Run): Promise<void> {
  const { messages } = await client.thread(run.threadId).messages({ limit: 1 });
  const parts = messages.flatMap((message) => (message.id === run.id ? message.parts : []));
  for (const part of parts) {
    if (part.type !== 'file' || part.action === 'deleted' || part.action === 'detached') continue;
    session.note(`File ${showInLine(part.name ?? '')}: spool file download ${part.fileId}`);
  }
}
