import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CommandError } from './exit-codes.ts';

/** Where the admin API is, and an operator's token for it. */
export interface ServiceAddress {
  /** Without a path. */
  origin: string;
  token: string;
}

export type Env = Record<string, string | undefined>;

/**
 * SPOOL_URL with SPOOL_TOKEN or SPOOL_TOKEN_FILE; without all of these what a running `npm start` has left in its data
 * directory. Never a part of each: a token must not go to a service that it is not meant for. Throws CommandError.
 */
export async function findService(env: Env): Promise<ServiceAddress> {
  const { SPOOL_URL, SPOOL_TOKEN, SPOOL_TOKEN_FILE } = env;
  if (!SPOOL_URL && !SPOOL_TOKEN && !SPOOL_TOKEN_FILE) return readQuickstart(env);
  if (!SPOOL_URL) throw new CommandError('usage', 'Set SPOOL_URL too, such as http://127.0.0.1:3000.');
  if (SPOOL_TOKEN && SPOOL_TOKEN_FILE) {
    throw new CommandError('usage', 'SPOOL_TOKEN and SPOOL_TOKEN_FILE are both set; unset one.');
  }
  if (!SPOOL_TOKEN && !SPOOL_TOKEN_FILE) {
    throw new CommandError('usage', 'Set SPOOL_TOKEN or SPOOL_TOKEN_FILE too, with an operator token.');
  }
  const token = SPOOL_TOKEN || (await readTokenFile(SPOOL_TOKEN_FILE ?? ''));
  return { origin: parseOrigin(SPOOL_URL), token: parseToken(token) };
}

async function readTokenFile(file: string): Promise<string> {
  return readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    throw new CommandError('usage', `SPOOL_TOKEN_FILE: ${file} cannot be read: ${error.code}.`);
  });
}

/** Not the words of fetch: it would say the URL with its password, or the header with its token. */
function parseOrigin(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const path = url?.pathname.replace(/\/(api\/v1|admin\/v1)?\/?$/, '');
  if (url === null || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || path !== '') {
    throw new CommandError('usage', 'SPOOL_URL must be the origin of a Spool API, such as http://127.0.0.1:3000.');
  }
  return url.origin;
}

function parseToken(text: string): string {
  const token = text.trim();
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new CommandError('usage', 'SPOOL_TOKEN must contain one token and nothing else.');
}

async function readQuickstart(env: Env): Promise<ServiceAddress> {
  // As libs/platform/process/config.ts has it, which takes half a second to load.
  const file = join(env['DATA_DIR'] || '.data', 'quickstart.env');
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const why = error.code === 'ENOENT' ? `there is no ${file}` : `${file} cannot be read: ${error.code}`;
    const how = 'Run npm start, set DATA_DIR as npm start has it, set SPOOL_URL and SPOOL_TOKEN, or pass --local.';
    throw new CommandError('away', `No service is configured (${why}). ${how}`);
  });
  const valueOf = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  return { origin: parseOrigin(valueOf('BASE_URL')), token: parseToken(valueOf('OPERATOR_TOKEN')) };
}
