import type { Tool, ToolPolicy } from './harness.ts';
import type { AgentManifest } from './manifest.ts';

/** Returns a function that finds a tool's policy: by the manifest's first pattern that fits its name, else its own default. */
export function toolPolicies({
  tools,
}: Pick<AgentManifest, 'tools'>): (tool: Pick<Tool, 'name' | 'policy'>) => ToolPolicy {
  const rules = tools.map(({ pattern, policy }) => ({ fits: patternTest(pattern), policy }));
  return ({ name, policy }) => rules.find(({ fits }) => fits(name))?.policy ?? policy;
}

/**
 * Returns a function that tests whether a name fits an owner's pattern, in which `*` stands for any characters. Uses no regular
 * expression, because a pattern could make one that never ends. Splits the pattern once, because 1,000 patterns may be compared
 * with 1,000 names.
 */
export function patternTest(pattern: string): (name: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (name) => name === pattern;
  return (name) => {
    if (!name.startsWith(first)) return false;
    let at = first.length;
    for (const part of rest) {
      const found = name.indexOf(part, at);
      if (found === -1) return false;
      at = found + part.length;
    }
    return name.length - last.length >= at && name.endsWith(last);
  };
}
