import type { Tool, ToolPolicy } from './harness.ts';
import type { AgentManifest } from './manifest.ts';

/** Whether a tool may run: the manifest's first pattern that fits its name, else the tool's own default. */
export function toolPolicy({ tools }: Pick<AgentManifest, 'tools'>, tool: Pick<Tool, 'name' | 'policy'>): ToolPolicy {
  return tools.find(({ pattern }) => fitsPattern(pattern, tool.name))?.policy ?? tool.policy;
}

/**
 * Whether a name fits an owner's pattern, in which `*` is any characters. Without a regular expression: a pattern must not
 * be able to make one that never ends.
 */
export function fitsPattern(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return name === pattern;
  if (!name.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - last.length >= at && name.endsWith(last);
}
