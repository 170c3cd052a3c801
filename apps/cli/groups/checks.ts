import type { AnswerOf, CallOf } from '../admin-client.ts';
import type { CommandSpec, Group, OptionSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError, EXIT } from '../exit-codes.ts';
import type { Session } from '../session.ts';
import { showInLine } from '../text.ts';

type From = Options & { from?: string; hash?: boolean };
const FROM: OptionSpec = { flags: '--from <threadId>', description: 'continue after this Thread' };
const FROM_ANY: OptionSpec = { flags: '--from <id>', description: 'continue after this Thread or file' };
const MAX_SHOWN = 20;

type Operation = 'verify' | 'verifyFiles' | 'rebuildProjections';

const lastOf = (line: { lastThreadId: string | null } | { lastFileId: string | null }): string | null =>
  'lastFileId' in line ? line.lastFileId : line.lastThreadId;

/** Follows the lines of a long operation to the last one; null where Ctrl-C has stopped it. */
async function follow<N extends Operation>(
  session: Session,
  name: N,
  { from, hash }: From,
  { command, tell }: { command: string; tell: (soFar: AnswerOf<N>) => string },
): Promise<AnswerOf<N> | null> {
  const progress = session.progress();
  let last = from ?? null;
  try {
    for await (const soFar of session.lines(name, { body: { from, ...(hash && { hash }) } } as CallOf<N>)) {
      if (soFar.done) return soFar;
      last = lastOf(soFar) ?? last;
      progress.report(tell(soFar));
    }
    if (!session.interrupted) {
      // With a position, the note below says how to continue.
      const advice = last === null ? ' Run it again.' : '';
      throw new CommandError('away', `The connection ended before the command was complete.${advice}`);
    }
  } catch (error) {
    progress.end();
    if (last !== null) session.note(`To continue: spool ${command} --from ${last}`);
    throw error;
  } finally {
    progress.end();
  }
  session.note(`Stopped.${last === null ? '' : ` To continue: spool ${command} --from ${last}`}`);
  return null;
}

/** Compares files with the blob store. */
async function verifyFiles(session: Session, options: From): Promise<void> {
  const report = await follow(session, 'verifyFiles', options, {
    command: `verify --files${options.hash ? ' --hash' : ''}`,
    tell: ({ files, bytes, found, lastFileId }) =>
      `${files} files, ${bytes} bytes checked: ${found} findings; last file: ${lastFileId ?? 'none'}`,
  });
  if (report === null) return;
  const { files, bytes, found, findings } = report;
  const shown = findings.slice(0, MAX_SHOWN);
  const lines = shown.map(({ fileId, threadId, problem, message }) => {
    const place = threadId === null ? 'a draft' : `of Thread ${threadId}`;
    return `${problem} ${fileId} ${place}: ${showInLine(message)}`;
  });
  if (found > shown.length) lines.push(`… and ${found - shown.length} more; --json has up to ${findings.length}`);
  await session.print(report, [`${files} files, ${bytes} bytes: ${found} findings`, ...lines].join('\n'));
  if (found > 0) session.found();
}

export const verify: CommandSpec<[], From & { files?: boolean }> = {
  usage: 'verify',
  description: `Check all streams against every invariant or, with --files, check all files. The service can keep running. Exits with ${EXIT.failed} on any finding.`,
  options: [
    FROM_ANY,
    { flags: '--files', description: 'compare files with the blob store instead: presence and size' },
    { flags: '--hash', description: 'with --files: read all bytes and compare their SHA-256 too' },
  ],
  examples: [
    ['verify'],
    ['verify --json'],
    ['verify --local', 'on the database, without the service'],
    ['verify --files'],
    ['verify --files --hash', 'reads every byte of every file'],
  ],
  async run(session, _, { files, ...options }) {
    if (files) return verifyFiles(session, options);
    if (options.hash) throw new CommandError('usage', '--hash needs --files.');
    const report = await follow(session, 'verify', options, {
      command: 'verify',
      tell: ({ streams, events, found, lastThreadId }) =>
        `${streams} streams, ${events} events checked: ${found} findings; last Thread: ${lastThreadId ?? 'none'}`,
    });
    if (report === null) return;
    const { streams, events, found, findings } = report;
    const shown = findings.slice(0, MAX_SHOWN);
    const lines = shown.map(({ threadId, invariant, message }) =>
      [invariant, threadId, showInLine(message)].filter((word) => word !== '').join(' '),
    );
    if (found > shown.length) lines.push(`… and ${found - shown.length} more; --json has up to ${findings.length}`);
    await session.print(report, [`${streams} streams, ${events} events: ${found} findings`, ...lines].join('\n'));
    if (found > 0) session.found();
  },
};

const rebuild: CommandSpec<[], From> = {
  usage: 'rebuild',
  description: `Rebuild every summary from its stream while the service runs, and repair differences. Exits with ${EXIT.failed} on any difference.`,
  options: [FROM],
  examples: [
    ['projections rebuild'],
    ['projections rebuild --from 01JD0000000000000000000000', 'continue a stopped rebuild'],
    ['projections rebuild --local', 'on the database, without the service'],
  ],
  async run(session, _, options) {
    const report = await follow(session, 'rebuildProjections', options, {
      command: 'projections rebuild',
      tell: ({ streams, events, differences, lastThreadId }) =>
        `${streams} streams, ${events} events, ${differences} differences repaired; last Thread: ${lastThreadId ?? 'none'}`,
    });
    if (report === null) return;
    const { streams, events, differences, left } = report;
    const text = `${streams} streams, ${events} events: ${differences} differences repaired, ${left} Threads skipped`;
    await session.print(report, text);
    if (differences > 0 || left > 0) session.found();
  },
};

export const projections: Group = {
  name: 'projections',
  description: 'Projections: rows derived from the streams.',
  commands: [rebuild],
};
