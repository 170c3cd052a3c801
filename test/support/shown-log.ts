import type { Page } from 'playwright-core';
import { eventually } from '#testing';
import { readLog, type Caller, type LogEntry } from './client.ts';

/** A part of a message on the Thread page: its kind, and what the user or the Agent wrote. */
type ShownPart = [kind: string, text: string | null];

/** Returns the parts of all messages in this log: deltas in a row as one text, and each tool call once, where it began. */
function expectedOf(log: readonly LogEntry[]): ShownPart[] {
  const parts: ShownPart[] = [];
  const calls = new Set<string>();
  let isText = false;
  for (const { type, content, toolCallId } of log) {
    const isDelta = type === 'agent.message.delta';
    if (isDelta && isText) parts.at(-1)![1] += content;
    else if (isDelta || type === 'user.message') parts.push(['text', content]);
    else if (toolCallId !== undefined && !calls.has(toolCallId)) parts.push(['tool', null]);
    if (toolCallId !== undefined) calls.add(toolCallId);
    isText = isDelta;
  }
  return parts;
}

const SHOWN = `[...document.querySelectorAll('[role=log] [data-part]')].map(({ dataset: { part }, lastElementChild }) =>
  [part, part === 'text' ? lastElementChild.textContent : null])`;

/** Waits until the Thread page shows exactly the stored log: nothing doubled, missing or out of order. */
export async function showsTheLog(page: Page, caller: Caller, threadId: string): Promise<LogEntry[]> {
  return eventually(
    async () => {
      const log = await readLog(caller, threadId);
      expect(await page.evaluate<ShownPart[]>(SHOWN)).toEqual(expectedOf(log));
      await page.getByText(`All ${log.length} entries`, { exact: true }).waitFor({ timeout: 1_000 });
      return log;
    },
    { what: 'the page shows the log', timeoutMs: 30_000 },
  );
}
