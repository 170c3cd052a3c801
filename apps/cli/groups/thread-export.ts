import type { CommandSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError } from '../exit-codes.ts';
import { OUTPUT, writeOutput } from '../output-file.ts';
import type { Session } from '../session.ts';
import { countOf } from '../text.ts';

export const exportThread: CommandSpec<[string], Options & { output?: string }> = {
  usage: 'export <threadId>',
  description: 'Write all stored events of a Thread, one line of JSON each (NDJSON).',
  options: [OUTPUT],
  examples: [
    ['thread export 01JD0000000000000000000000 > thread.ndjson'],
    ['thread export 01JD0000000000000000000000 --output thread.ndjson'],
  ],
  async run(session, [threadId], { output }) {
    const count = await writeOutput(session, output, (write) => copyEvents(session, threadId, write));
    session.note(session.interrupted ? 'Stopped.' : `${countOf(count, 'event')}.`);
  },
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
    throw new CommandError(
      'away',
      `Received only ${count} of ${events} events because the service stopped. When it runs again, repeat the command.`,
    );
  }
  return count;
}
