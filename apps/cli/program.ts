import { Command } from 'commander';
import type { Pool } from 'pg';
import { migrate } from '#event-store';
import { openDatabase, StartError, throwReadable } from '#platform';
import { rebuild, verify, type RebuildReport } from '#projections';
import { findDatabaseUrl } from './database-url.ts';
import { showProgress } from './progress.ts';

/** A command found something that must not be; its result says what. */
const EXIT_FOUND = 1;
const MAX_SHOWN = 20;

/** `spool`: what operators type. Results go to standard output, progress and errors to standard error. */
export function createProgram(): Command {
  const program = new Command('spool')
    .description('Operates a Spool installation.')
    .addHelpText('after', HELP)
    .showHelpAfterError();
  program
    .command('migrate')
    .description('Brings the database up to date. Safe to run by any number of processes at once.')
    .action(async () => {
      const url = await findDatabaseUrl(process.env);
      await migrate(url).catch((error: unknown) => throwReadable(error, url));
      process.stdout.write('The database is up to date.\n');
    });
  program
    .command('verify')
    .description('Checks every invariant of every stream, also while appends go on. Exits with 1 on any finding.')
    .option('--json', 'print one JSON object')
    .action((options: { json?: boolean }) => withPool((pool) => runVerify(pool, options)));
  program
    .command('projections')
    .description('Works on what is derived from the streams.')
    .command('rebuild')
    .description(
      'Folds every summary anew from its stream, online, and mends what differs. Exits with 1 on any difference.',
    )
    .option('--from <threadId>', 'go on after this Thread')
    .option('--json', 'print one JSON object')
    .action((options: { from?: string; json?: boolean }) => withPool((pool) => runRebuild(pool, options)));
  return program;
}

const HELP = `
Examples:
  $ npx spool verify                         beside a running npm start
  $ DATABASE_URL=postgres://… npx spool verify --json
  $ npx spool projections rebuild            summaries anew from their streams
  $ npx spool projections rebuild --from 01JD…   go on where a rebuild was stopped

The database is DATABASE_URL, or the embedded one of a running npm start.`;

async function runVerify(pool: Pool, { json }: { json?: boolean }): Promise<void> {
  const progress = showProgress();
  const report = await verify(pool, {
    onProgress: ({ streams, events, found }) =>
      progress.report(`${streams} streams, ${events} events checked: ${found} findings`),
  });
  progress.end();
  const { streams, events, found, findings } = report;
  const shown = findings.slice(0, MAX_SHOWN);
  const lines = shown.map(({ threadId, invariant, message }) => `${invariant} ${threadId} ${message}`);
  if (found > shown.length) lines.push(`… and ${found - shown.length} more; --json has up to ${findings.length}`);
  const text = [`${streams} streams, ${events} events: ${found} findings`, ...lines];
  print(json, report, text);
  if (found > 0) process.exitCode = EXIT_FOUND;
}

async function runRebuild(pool: Pool, { from, json }: { from?: string; json?: boolean }): Promise<void> {
  const progress = showProgress();
  let last = from ?? null;
  let stopped = false;
  const stop = (): void => void (stopped = true);
  process.once('SIGINT', stop);
  const onProgress = ({ streams, events, differences, lastThreadId }: RebuildReport): void => {
    last = lastThreadId;
    const soFar = `${streams} streams, ${events} events, ${differences} differences mended`;
    progress.report(`${soFar}; the last Thread done is ${last ?? 'none'}`);
    if (stopped) throw new StartError('Stopped.');
  };
  const report = await rebuild(pool, { from, onProgress })
    .catch((error: unknown) => {
      progress.end();
      if (last !== null) process.stderr.write(`Go on with: spool projections rebuild --from ${last}\n`);
      throw error;
    })
    .finally(() => process.off('SIGINT', stop));
  progress.end();
  const { streams, events, differences, left } = report;
  const text = [
    `${streams} streams, ${events} events: ${differences} differences mended, ${left} Threads left as they are`,
  ];
  print(json, report, text);
  if (differences > 0 || left > 0) process.exitCode = EXIT_FOUND;
}

function print(json: boolean | undefined, report: object, lines: string[]): void {
  process.stdout.write(json ? `${JSON.stringify(report)}\n` : `${lines.join('\n')}\n`);
}

async function withPool(work: (pool: Pool) => Promise<void>): Promise<void> {
  const url = await findDatabaseUrl(process.env);
  try {
    const options = { url, applicationName: 'spool cli', maxConnections: 2, statementTimeoutMs: 0 };
    const database = await openDatabase(options);
    await work(database.pool).finally(() => database.close());
  } catch (error) {
    throwReadable(error, url);
  }
}
