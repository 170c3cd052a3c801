import { runCli } from './cli.ts';
import { EXIT } from './exit-codes.ts';
import { maskTokens } from './secrets.ts';

// `spool thread list | head`: nobody reads on, and that is no fault.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? EXIT.done : EXIT.failed);
});

const { env, stdout: out, stderr: err } = process;
const exitCode = await runCli(process.argv.slice(2), { env, out, err }).catch((error: unknown) => {
  // A fault of ours.
  err.write(`${maskTokens(String(error instanceof Error ? error.stack : error))}\n`);
  return EXIT.failed;
});
// Not when nothing is left to do: a database that refuses leaves half an application behind, which tries again for ever.
out.write('', () => err.write('', () => process.exit(exitCode)));
