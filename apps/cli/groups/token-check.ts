import { createHash } from 'node:crypto';
import type { TokenRecord } from '#contract';
import type { CommandSpec } from '../command-spec.ts';
import { CommandError } from '../exit-codes.ts';
import { readSecret } from '../prompt.ts';

/** Which token it is that was found somewhere. It goes nowhere: only its SHA-256 is sent. */
export const check = (fieldsOf: (token: TokenRecord) => string): CommandSpec<[]> => ({
  usage: 'check',
  description: 'Identify a token read from standard input. Sends only its SHA-256 to the service.',
  examples: [['token check < found.txt'], ['token check', 'prompts for the token without showing it']],
  async run(session) {
    const secret = (await readSecret('The token: ')).trim();
    const { isToken } = await import('#access');
    if (!isToken(secret)) throw new CommandError('failed', 'Not a Spool token: its format or checksum is wrong.');
    session.note('Its format and checksum are valid.');
    const sha256 = createHash('sha256').update(secret).digest('hex');
    const { token } = await session.call('identifyToken', { body: { sha256 } });
    await session.print(token, fieldsOf(token));
  },
});
