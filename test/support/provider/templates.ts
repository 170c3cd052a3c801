import type { Asked } from './asked.ts';

const VALUES: Record<string, (asked: Asked) => string> = {
  message: ({ message }) => message,
  // Behind it may stand what the harness tells of files.
  firstLine: ({ message }) => message.split('\n', 1)[0]!,
  lastToolResult: ({ toolResults }) => toolResults.at(-1) ?? '',
  toolResults: ({ toolResults }) => toolResults.join('\n'),
};
const TEMPLATE = /\{\{(\w+)\}\}/g;

/** What may stand in `{{…}}` in texts and tool inputs of a script. */
export const TEMPLATE_NAMES = Object.keys(VALUES);

export function templateNamesIn(text: string): string[] {
  return [...text.matchAll(TEMPLATE)].map(([, name]) => name!);
}

/** The same value, with the templates in its strings filled in. */
export function fill<T>(value: T, asked: Asked): T {
  if (typeof value === 'string') return value.replace(TEMPLATE, (_, name: string) => VALUES[name]!(asked)) as T;
  if (Array.isArray(value)) return value.map((item: unknown) => fill(item, asked)) as T;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill<unknown>(item, asked)])) as T;
}
