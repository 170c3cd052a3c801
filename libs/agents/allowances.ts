import { homedir } from 'node:os';
import { basename, isAbsolute, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { configSchema, isOwnVariable, parseList, type Config } from '#platform';

type Env = Record<string, string | undefined>;

/** The variables, files and programs that manifests may name. A manifest cannot widen them. */
export interface Allowances {
  /** The variables of the process. */
  env: Env;
  /** Names of variables, and endings: `*_API_KEY`. */
  variables: readonly string[];
  /** Files that may be named, and folders of such files. */
  files: readonly string[];
  /** Files and folders of the service itself. They may not be named, even if they are in `files`. */
  ownFiles: readonly string[];
  /** Absolute paths of programs. */
  commands: readonly string[];
  /** Whether tool servers may have the worker's network. */
  network: boolean;
}

export const NOTHING_ALLOWED: Allowances = {
  env: {},
  variables: [],
  files: [],
  ownFiles: [],
  commands: [],
  network: false,
};

/** Returns the allowances of the settings. */
export function allowancesOf(config: Config, env: Env): Allowances {
  return {
    env,
    variables: parseList(config.MANIFEST_VARIABLES),
    files: parseList(config.MANIFEST_FILES),
    ownFiles: ownFiles(config, env),
    commands: parseList(config.TOOL_SERVER_COMMANDS),
    network: config.TOOL_SERVER_NETWORK === 'on',
  };
}

export const SETTINGS: readonly string[] = Object.keys(configSchema.shape);

/** Client keys of TLS, in the addresses of PostgreSQL and Redis. */
const KEY_FILE = /[?&](?:key|sslkey)=([^&]+)/g;

/** Client keys of OpenTelemetry's exporters. */
const EXPORTER_KEY = /^OTEL_EXPORTER_OTLP_(\w+_)?CLIENT_KEY$/;
/** Files with secrets that client libraries read without being told, in the home directory. */
const HOME_FILES = ['.pgpass', '.aws/credentials', '.aws/config'];

/**
 * Returns the data directory, the blobs, each file that a setting or a variable of a client library names, and those that
 * client libraries read by default.
 */
function ownFiles({ DATA_DIR, BLOB_URL, DATABASE_URL, QUEUE_URL, REDIS_URL }: Config, env: Env): string[] {
  const named = Object.entries(env).flatMap(([name, value]) =>
    (/FILE$/.test(name) || EXPORTER_KEY.test(name)) && isOwnVariable(name, SETTINGS) && value ? [value] : [],
  );
  const keys = [DATABASE_URL, QUEUE_URL, REDIS_URL].flatMap((url) =>
    [...(url ?? '').matchAll(KEY_FILE)].map(([, file = '']) => decodeURIComponent(file)),
  );
  const blobs = BLOB_URL?.startsWith('file:') ? [fileURLToPath(BLOB_URL)] : [];
  const home = HOME_FILES.map((file) => join(env['HOME'] ?? homedir(), file));
  return [...new Set([DATA_DIR, ...blobs, ...named, ...keys, ...home].map((file) => resolve(file)))];
}

/** A manifest names something that the installation does not allow. `message` is one sentence for operators, without `;`. */
export class NotAllowed extends Error {
  override name = 'NotAllowed';

  /** `needs` is null for what no setting can allow. */
  constructor(
    message: string,
    readonly needs: AllowingSetting | null = null,
  ) {
    super(message);
  }
}

/** The setting that would allow it, and the entry to add to it. */
export interface AllowingSetting {
  setting: 'MANIFEST_VARIABLES' | 'MANIFEST_FILES' | 'TOOL_SERVER_COMMANDS' | 'TOOL_SERVER_NETWORK';
  entry: string;
}

/** Returns the path of a program, by its path or by the last part of it. Throws NotAllowed. */
export function allowedCommand(command: string, { commands }: Allowances): string {
  const found = commands.find((path) => path === command || basename(path) === command);
  if (found !== undefined) return found;
  const name = JSON.stringify(command.slice(0, 100));
  throw new NotAllowed(`The command ${name} is not allowed: add its absolute path to TOOL_SERVER_COMMANDS.`, {
    setting: 'TOOL_SERVER_COMMANDS',
    entry: isAbsolute(command) ? command : `/path/to/${command}`,
  });
}

/** Throws NotAllowed. */
export function requireNetwork({ network }: Allowances): void {
  if (network) return;
  const needs = { setting: 'TOOL_SERVER_NETWORK', entry: 'on' } as const;
  throw new NotAllowed(
    'Tool servers have no network here: set TOOL_SERVER_NETWORK=on to give them the worker’s.',
    needs,
  );
}
