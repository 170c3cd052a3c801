import type { Page } from 'playwright-core';
import { eventually } from '#testing';
import { readLog, type Caller, type LogEntry } from './client.ts';

/** What a Thread page shows for one or several entries of the log: its kind, and the text of what somebody has said. */
type ShownItem = [kind: string, text: string | null];

const KINDS: Record<string, string> = {
  'user.message': 'user',
  'agent.message.delta': 'message',
  'session.status': 'status',
  'run.started': 'started',
  'run.completed': 'completed',
  'usage.updated': 'usage',
};

/** What it has to show of this log: pieces in a row as one text, and all entries of a call as one item where it began. */
function expectedOf(log: readonly LogEntry[]): ShownItem[] {
  const items: ShownItem[] = [];
  const calls = new Set<string>();
  let isSaying = false;
  for (const { type, content, toolCallId } of log) {
    const isPiece = type === 'agent.message.delta';
    if (isPiece && isSaying) {
      items.at(-1)![1] += content;
    } else if (toolCallId !== undefined) {
      if (!calls.has(toolCallId)) items.push(['tool', null]);
      calls.add(toolCallId);
    } else {
      items.push([KINDS[type] ?? type, isPiece || type === 'user.message' ? content : null]);
    }
    isSaying = isPiece;
  }
  return items;
}

const SHOWN = `[...document.querySelectorAll('[role=log] [data-kind]')].map(({ dataset: { kind }, lastElementChild }) =>
  [kind, kind === 'user' || kind === 'message' ? lastElementChild.textContent : null])`;

/** Waits until the Thread page shows exactly what the API says is stored: nothing doubled, missing or out of order. */
export async function showsTheLog(page: Page, caller: Caller, threadId: string): Promise<LogEntry[]> {
  return eventually(
    async () => {
      const log = await readLog(caller, threadId);
      expect(await page.evaluate<ShownItem[]>(SHOWN)).toEqual(expectedOf(log));
      await page.getByText(`All ${log.length} entries`, { exact: true }).waitFor({ timeout: 1_000 });
      return log;
    },
    { what: 'the page shows the log', timeoutMs: 30_000 },
  );
}
