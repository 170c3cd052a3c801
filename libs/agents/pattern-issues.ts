import { FILE_TOOLS } from './file-tools/file-tools.ts';
import type { AgentManifest } from './manifest.ts';
import type { ManifestIssue } from './manifest-issues.ts';
import { toolPrefix } from './mcp/tool-names.ts';
import { patternTest } from './tool-policy.ts';

/** Patterns that can fit no tool: a typing error in one would let a tool run that was meant to ask. */
export function patternIssues({ tools, toolServers }: AgentManifest): ManifestIssue[] {
  const prefixes = toolServers.map(({ name }) => toolPrefix(name));
  const message = `matches no tool; available: ${[...FILE_TOOLS.map(({ name }) => name), ...prefixes.map((prefix) => `${prefix}*`)].join(', ')}`;
  return tools.flatMap(({ pattern }, i) =>
    mayFit(pattern, prefixes) ? [] : [{ path: ['tools', i, 'pattern'], at: 'value' as const, message }],
  );
}

/** Which tools a server has, it says only when it is asked; how their names begin is known. */
function mayFit(pattern: string, prefixes: readonly string[]): boolean {
  const fits = patternTest(pattern);
  if (FILE_TOOLS.some(({ name }) => fits(name))) return true;
  const [head = '', ...rest] = pattern.split('*');
  return prefixes.some((prefix) => head.startsWith(prefix) || (rest.length > 0 && prefix.startsWith(head)));
}
