import { setTimeout as wait } from 'node:timers/promises';
import type { AnswerOf } from '../admin-client.ts';
import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { showControls } from '../text.ts';

type Entry = AnswerOf<'tailThread'>;
type TailOptions = Options & { after?: string; untilIdle?: true };

/** A pod that stops ends its streams; the next one goes on after the entry that was seen last. */
const MAX_FAILURES = 5;
const RECONNECT_MS = 1_000;

export const tail: CommandSpec<[string], TailOptions> = {
  usage: 'tail <threadId>',
  description: 'Follow the log of a Thread, until Ctrl-C or until the Thread is deleted.',
  options: [
    { flags: '--after <eventId>', description: 'start after this entry; default: the latest 20 entries' },
    { flags: '--until-idle', description: 'stop when no Run is active and all entries are shown' },
  ],
  examples: [
    ['thread tail 01JD0000000000000000000000'],
    ['thread tail 01JD0000000000000000000000 --until-idle --json', 'one line of JSON per entry'],
  ],
  async run(session, [threadId], { after, untilIdle }) {
    const until = untilIdle ? ('idle' as const) : undefined;
    let last = after;
    for (let failures = 0; !session.interrupted;) {
      let count = 0;
      try {
        for await (const entry of session.lines('tailThread', {
          params: { threadId },
          query: { after: last, until },
        })) {
          last = entry.id;
          count++;
          failures = 0;
          await session.write(`${session.json ? JSON.stringify(entry) : readable(entry)}\n`);
        }
        // Whatever has ended it: with nothing left to show, the Thread says whether that was all.
        if (session.interrupted || (count === 0 && (await isOver(session, threadId, untilIdle)))) return;
      } catch (error) {
        if (!(error instanceof CommandError) || error.exit !== 'away' || ++failures >= MAX_FAILURES) throw error;
        session.note(`${error.message} Trying again.`);
      }
      if (count === 0) await wait(RECONNECT_MS);
    }
  },
};

async function isOver(session: Session, threadId: string, untilIdle?: true): Promise<boolean> {
  try {
    const { thread } = await session.call('getThread', { params: { threadId } });
    return untilIdle === true && (thread.status === 'IDLE' || thread.status === 'TERMINATED');
  } catch (error) {
    if (!(error instanceof CommandError) || error.exit !== 'notFound') throw error;
    session.note('The Thread is deleted.');
    return true;
  }
}

const TYPE_WIDTH = 'tool.confirmation.required'.length;

/** Of a tool's input so many characters: whoever decides needs to see what it is about. */
const SHOWN_INPUT = 500;

function readable({ occurredAt, type, status, content, toolName, toolInput }: Entry): string {
  const head = `${occurredAt}  ${type.padEnd(TYPE_WIDTH)}  `;
  const marks = [toolName, status === 'available' ? undefined : status].filter((mark) => mark !== undefined);
  const input = toolInput === undefined ? '' : `\n${cut(JSON.stringify(toolInput))}`;
  const text = `${marks.length > 0 ? `[${marks.join(' ')}] ` : ''}${content}${input}`;
  return head + showControls(text).replaceAll('\n', `\n${' '.repeat(head.length)}`);
}

function cut(text: string): string {
  return text.length > SHOWN_INPUT ? `${text.slice(0, SHOWN_INPUT)}…` : text;
}
