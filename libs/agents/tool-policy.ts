import type { Tool, ToolPolicy } from './harness.ts';
import type { AgentManifest } from './manifest.ts';

/** Returns the policy of each tool: that of the manifest's first pattern that fits its name, else the tool's own default. */
export function toolPolicies({
  tools,
}: Pick<AgentManifest, 'tools'>): (tool: Pick<Tool, 'name' | 'policy'>) => ToolPolicy {
  const rules = tools.map(({ pattern, policy }) => ({ fits: patternTest(pattern), policy }));
  return ({ name, policy }) => rules.find(({ fits }) => fits(name))?.policy ?? policy;
}

/**
 * Returns whether a name fits an owner's pattern, in which `*` is any characters. Without a regular expression, because a pattern
 * could make one that never ends. Split once, because 1,000 patterns may meet 1,000 names.
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
