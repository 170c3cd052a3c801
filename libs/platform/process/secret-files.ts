import { readFileSync } from 'node:fs';

/** Settings that hold passwords or keys, so they may be given as files. */
const SECRET_SETTINGS = ['DATABASE_URL', 'QUEUE_URL', 'REDIS_URL', 'BROWSER_TOKEN_KEYS'] as const;

type Env = Record<string, string | undefined>;

/**
 * Replaces `DATABASE_URL_FILE` and the like by the content of the file that they name, without line breaks at its end.
 * `problems` never hold a content.
 */
export function readSecretFiles(given: Env): { set: Env; problems: string[] } {
  const set = { ...given };
  const problems: string[] = [];
  for (const name of SECRET_SETTINGS) {
    const file = given[`${name}_FILE`];
    if (file === undefined) continue;
    if (given[name] !== undefined) problems.push(`${name}: is set; unset it or ${name}_FILE`);
    else {
      try {
        set[name] = readFileSync(file, 'utf8').trim();
      } catch (error) {
        problems.push(`${name}_FILE: cannot be read: ${(error as NodeJS.ErrnoException).code}`);
      }
      if (set[name] === '') problems.push(`${name}_FILE: is empty`);
    }
  }
  return { set, problems };
}
