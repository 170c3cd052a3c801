import { open, rename, rm } from 'node:fs/promises';
import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { countOf } from '../text.ts';

export const exportThread: CommandSpec<[string], Options & { output?: string }> = {
  usage: 'export <threadId>',
  description: 'Write every event of a Thread as it is stored, a line of JSON each (NDJSON).',
  options: [{ flags: '-o, --output <file>', description: 'instead of to standard output; readable by you only' }],
  examples: [
    ['thread export 01JD0000000000000000000000 > thread.ndjson'],
    ['thread export 01JD0000000000000000000000 --output thread.ndjson'],
  ],
  async run(session, [threadId], { output }) {
    const count =
      output === undefined
        ? await copyEvents(session, threadId, (line) => session.write(line))
        : await exportTo(session, threadId, output);
    session.note(session.interrupted ? 'Stopped.' : `${countOf(count, 'event')}.`);
  },
};

/** The file is there whole, or as it was. */
async function exportTo(session: Session, threadId: string, output: string): Promise<number> {
  const part = `${output}.${process.pid}.part`;
  const file = await open(part, 'wx', 0o600).catch(unwritable(part));
  try {
    const count = await copyEvents(session, threadId, (line) => file.appendFile(line).catch(unwritable(part)));
    await file.close();
    if (!session.interrupted) await rename(part, output).catch(unwritable(output));
    return count;
  } finally {
    await file.close();
    await rm(part, { force: true });
  }
}

const unwritable =
  (path: string) =>
  ({ code }: NodeJS.ErrnoException): never => {
    throw new CommandError('usage', `${path} cannot be written: ${code}.`);
  };

/** How many. Throws CommandError where some are missing: an answer that was cut off can look like one that has ended. */
async function copyEvents(session: Session, threadId: string, write: (line: string) => Promise<void>): Promise<number> {
  const params = { threadId };
  const { events } = await session.call('getThread', { params });
  let count = 0;
  for await (const event of session.lines('exportThread', { params })) {
    await write(`${JSON.stringify(event)}\n`);
    count++;
  }
  if (count < events && !session.interrupted) {
    throw new CommandError('away', `Only ${count} of ${events} events have come: the service has stopped meanwhile.`);
  }
  return count;
}
