import { posix } from 'node:path';
import { z } from 'zod';
import { configSchema, SETTING_TOPICS } from './config.ts';

interface Setting {
  name: string;
  description: string;
  readers: string[];
  /** Shown in .env.example if there is no default. */
  example?: string;
  default?: string | number;
  minimum?: number;
  maximum?: number;
  enum?: string[];
}

/** The page of all settings, for operators. */
export const SETTINGS_PAGE = 'docs/operations/settings.md';

const ENV_HEADER = `
# All settings, with their defaults. Settings without a default are commented out, with an example.
# Spool does not read this file: set environment variables.
# Written by \`npm run settings\` from libs/platform/process/config.ts. The same list as a page: ${SETTINGS_PAGE}.
# DATABASE_URL_FILE, QUEUE_URL_FILE, REDIS_URL_FILE and BROWSER_TOKEN_KEYS_FILE may name files that hold these settings.
`;

const PAGE_HEADER = `
# Settings

For operators: all settings of Spool.

<!-- Written by \`npm run settings\` from libs/platform/process/config.ts. -->

Each is an environment variable; an empty one counts as unset. Spool reads no \`.env\` file.
A process with a wrong setting does not start, and its error message names every wrong setting.

- *Read by* names the processes on which a setting has an effect. \`npm start\` is an API and a worker in one.
  \`cli\` means \`spool\` with \`--local\`, \`spool migrate\` and \`spool agent check\`. [operators.md](../operators.md) has the variables of \`spool\` itself.
- Names that end in \`_MS\` are milliseconds, and those with \`BYTES\` are bytes. \`PERCENT\` is a percentage.
- \`DATABASE_URL\`, \`QUEUE_URL\`, \`REDIS_URL\` and \`BROWSER_TOKEN_KEYS\` can be in files. To name such a file, append \`_FILE\` to the setting, as in \`DATABASE_URL_FILE\`.
- [api/limits.md](../api/limits.md) states what callers get beyond a limit, and the limits that are no settings.
`;

const properties = z.toJSONSchema(configSchema).properties as Record<string, Omit<Setting, 'name'>>;
const topics = Object.entries(SETTING_TOPICS).map(([topic, settings]) => ({
  topic,
  settings: Object.keys(settings).map((name): Setting => ({ name, ...properties[name]! })),
}));

/** Returns the text of .env.example. */
export function envExample(): string {
  const sections = topics.map(({ topic, settings }) => `## ${topic}\n\n${settings.map(envEntry).join('\n\n')}`);
  return `${ENV_HEADER.trim()}\n\n${sections.join('\n\n')}\n`;
}

function envEntry(setting: Setting): string {
  const { name, description, example } = setting;
  const allowed = allowedValues(setting);
  const comment = allowed === '' ? description : `${description} Allowed: ${allowed}.`;
  const line = setting.default === undefined ? `# ${name}=${example}` : `${name}=${setting.default}`;
  return `${wrap(comment)}\n${line}`;
}

/** Returns comment lines of at most 118 characters. */
const wrap = (text: string): string => text.replaceAll(/(.{1,116})(?: |$)/g, '# $1\n').trimEnd();

/** Returns the text of the page. */
export function settingsPage(): string {
  const sections = topics.map(
    ({ topic, settings }) => `## ${topic}

| setting | read by | default | allowed | meaning |
|---|---|---|---|---|
${settings.map(pageRow).join('\n')}`,
  );
  return `${PAGE_HEADER.trim()}\n\n${sections.join('\n\n')}\n`;
}

function pageRow(setting: Setting): string {
  const { name, readers, description } = setting;
  const value = setting.default === undefined ? 'unset' : `\`${setting.default}\`${inWords(name, setting.default)}`;
  return `| \`${name}\` | ${readers.join(', ')} | ${value} | ${allowedValues(setting)} | ${linked(description)} |`;
}

function allowedValues({ name, minimum = -Infinity, maximum = Infinity, enum: values }: Setting): string {
  if (values !== undefined) return values.join(', ');
  if (!Number.isFinite(minimum)) return '';
  const least = `${minimum}${inWords(name, minimum)}`;
  // Zod states the largest safe integer if there is no maximum.
  return maximum < Number.MAX_SAFE_INTEGER ? `${least} to ${maximum}${inWords(name, maximum)}` : `at least ${least}`;
}

const UNITS: [name: RegExp, units: [unit: string, size: number][]][] = [
  [
    /_MS$/,
    [
      ['h', 3_600_000],
      ['min', 60_000],
      ['s', 1_000],
    ],
  ],
  [
    /_BYTES$/,
    [
      ['GiB', 1024 ** 3],
      ['MiB', 1024 ** 2],
      ['KiB', 1024],
    ],
  ],
];

/** Returns a number in larger units, in parentheses; '' if there is none that it is a multiple of. */
function inWords(name: string, value: string | number): string {
  const units = UNITS.find(([pattern]) => pattern.test(name))?.[1] ?? [];
  const unit = units.find(([, size]) => Number(value) > 0 && Number(value) % size === 0);
  return unit === undefined ? '' : ` (${Number(value) / unit[1]} ${unit[0]})`;
}

/** Turns the paths of documents into links from the page. */
function linked(text: string): string {
  const folder = posix.dirname(SETTINGS_PAGE);
  return text.replaceAll(/docs\/[\w/-]+\.md/g, (path) => {
    const link = posix.relative(folder, path);
    return `[${link.replace(/^(\.\.\/)+/, '')}](${link})`;
  });
}
