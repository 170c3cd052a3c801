import { configSchema, type Config } from './config.ts';
import { StartError } from './main-process.ts';
import { isRedisUrl } from '../redis/redis-address.ts';
import { readSecretFiles } from './secret-files.ts';

/** Wrong settings: the process must not start. `message` is one readable line. */
export class ConfigError extends StartError {
  override name = 'ConfigError';
}

/** Settings that cover several others. Earlier releases had one setting for them. */
const COVERING = {
  RATE_LIMIT_PER_MINUTE: ['RATE_LIMIT_PER_PERSON_TOKEN', 'RATE_LIMIT_PER_SERVICE_TOKEN'],
  STREAMS_PER_TOKEN: ['STREAMS_PER_PERSON_TOKEN', 'STREAMS_PER_SERVICE_TOKEN'],
} as const;

/** Gives the value of each covering setting to the settings below it that are not set. */
function coverUnset(config: Config, set: object): Config {
  const covered = { ...config };
  for (const name of Object.keys(COVERING) as (keyof typeof COVERING)[]) {
    const value = config[name];
    for (const each of COVERING[name]) if (value !== undefined && !(each in set)) covered[each] = value;
  }
  return covered;
}

/**
 * Reads and checks the settings. Empty variables count as unset. Settings that hold secrets may be in files; variables that end in
 * `_FILE` name these files. Throws ConfigError naming every wrong setting.
 */
export function loadConfig(env: Record<string, string | undefined>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ''));
  const { set, problems } = readSecretFiles(given);
  if (problems.length > 0) throw new ConfigError(`Wrong configuration: ${problems.join('; ')}`);
  const parsed = configSchema.safeParse(set);
  if (parsed.success) return coverUnset(parsed.data, set);
  const wrong = parsed.error.issues.map(({ path, message }) => {
    const name = path.join('.');
    // Never shows a key, or the value of a URL, which may contain a password.
    const given = /_(URL|ENDPOINT|KEYS)$/.test(name) ? '' : `, not ${JSON.stringify(set[name])}`;
    return `${name}: ${message}${given}`;
  });
  throw new ConfigError(`Wrong configuration: ${wrong.join('; ')}`);
}

/** Returns the URL of the Redis for messages between processes; undefined if they use PostgreSQL. */
export function redisUrlOf({ REDIS_URL, QUEUE_URL }: Pick<Config, 'REDIS_URL' | 'QUEUE_URL'>): string | undefined {
  return REDIS_URL ?? (isRedisUrl(QUEUE_URL) ? QUEUE_URL : undefined);
}

/** Throws ConfigError if the chat page is on without the keys of its tokens. `npm start` makes the keys itself. */
export function requireChatKeys({ CHAT_PAGE, BROWSER_TOKEN_KEYS }: Config): void {
  if (CHAT_PAGE === 'off' || BROWSER_TOKEN_KEYS !== undefined) return;
  throw new ConfigError('Wrong configuration: BROWSER_TOKEN_KEYS: must be set, because CHAT_PAGE is on');
}

/** Returns the database URL, required without an embedded database. Throws ConfigError if it is missing. */
export function requireDatabaseUrl({ DATABASE_URL }: Config): string {
  if (DATABASE_URL === undefined) throw new ConfigError('Wrong configuration: DATABASE_URL: must be set');
  return DATABASE_URL;
}
