import { createHash } from 'node:crypto';

/** What model providers take as a tool's name. */
const MAX_NAME = 64;
const NOT_IN_NAMES = /[^a-zA-Z0-9_-]/g;

/** How the names of a server's tools begin; no server's name has such an underscore. */
export const toolPrefix = (server: string): string => `${server}__`;

/**
 * The names that models know a server's tools by, `<server>__<tool>`, by the server's own; each is unique. The same tool has
 * the same name however the server orders them: where two would have one, those that had to be changed get a hash.
 */
export function toolNames(server: string, tools: readonly string[]): Map<string, string> {
  const wanted = [...new Set(tools)].map((tool) => {
    const plain = `${toolPrefix(server)}${tool}`;
    // What is longer gets a hash in any case.
    return { tool, plain, name: plain.slice(0, 2 * MAX_NAME).replaceAll(NOT_IN_NAMES, '_') };
  });
  const counts = new Map<string, number>();
  for (const { name } of wanted) counts.set(name, (counts.get(name) ?? 0) + 1);
  const named = wanted.map(({ tool, plain, name }) => {
    const collides = counts.get(name) !== 1 && name !== plain;
    return [tool, collides || name.length > MAX_NAME ? withHash(name, tool) : name] as const;
  });
  return new Map(named);
}

function withHash(name: string, tool: string): string {
  const hash = createHash('sha256').update(tool).digest('hex').slice(0, 8);
  return `${name.slice(0, MAX_NAME - hash.length - 1)}_${hash}`;
}
