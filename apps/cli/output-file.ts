import { open, rename, rm } from 'node:fs/promises';
import type { OptionSpec } from './command-spec.ts';
import { CommandError } from './exit-codes.ts';
import type { Session } from './session.ts';

export const OUTPUT: OptionSpec = {
  flags: '-o, --output <file>',
  description: 'file to write instead of standard output; only you can read it',
};

type Write = (chunk: string | Uint8Array) => Promise<void>;

/** To standard output, or to a file that is then there whole, or as it was. Throws CommandError and what `fill` throws. */
export async function writeOutput<T>(
  session: Session,
  output: string | undefined,
  fill: (write: Write) => Promise<T>,
): Promise<T> {
  if (output === undefined) return fill((chunk) => session.write(chunk));
  const part = `${output}.${process.pid}.part`;
  const file = await open(part, 'wx', 0o600).catch(unwritable(part));
  try {
    const result = await fill((chunk) => file.appendFile(chunk).catch(unwritable(part)));
    await file.close();
    if (!session.interrupted) await rename(part, output).catch(unwritable(output));
    return result;
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
