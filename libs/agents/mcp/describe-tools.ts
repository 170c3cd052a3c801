import { BOUNDS, storableText } from '#domain';
import { pauseIfLong } from '#platform';
import { firstBytes } from '../first-bytes.ts';
import type { Tool } from '../harness.ts';
import { patternTest } from '../tool-policy.ts';
import { showName } from './read-schema.ts';
import type { ListedTool } from './read-tool.ts';
import { toolNames } from './tool-names.ts';
import type { ToolServer } from './tool-server.ts';

const MAX_TITLE = BOUNDS.toolServers.title.value;
const MAX_DESCRIPTION_BYTES = BOUNDS.toolServers.description.value;
const MAX_SCHEMA_BYTES = BOUNDS.toolServers.schema.value;

/** A tool with the name that its server uses. */
export type ServerTool = Omit<Tool, 'execute'> & { serverName: string };

/** Returns the tools of a server as agents see them. `leftOut` has a reason for each tool that is left out. */
export async function describeTools(
  server: Pick<ToolServer, 'name' | 'idempotent'>,
  listed: readonly ListedTool[],
): Promise<{ tools: ServerTool[]; leftOut: string[] }> {
  const names = toolNames(
    server.name,
    listed.map(({ name }) => name),
  );
  const tools: ServerTool[] = [];
  const leftOut: string[] = [];
  const byName = new Map<string, ListedTool>();
  for (const tool of listed) {
    if (byName.has(tool.name))
      leftOut.push(`The tool ${showName(tool.name)} is listed more than once; the first is kept.`);
    else byName.set(tool.name, tool);
  }
  const taken = new Set<string>();
  const idempotentTests = server.idempotent.map(patternTest);
  for (const [serverName, name] of names) {
    // Each name is compared with up to 1,000 patterns.
    await pauseIfLong();
    const tool = byName.get(serverName);
    if (tool === undefined) continue;
    if (taken.has(name)) {
      leftOut.push(`Another tool has the name ${name} already.`);
      continue;
    }
    const { title, annotations = {}, description = '', inputSchema } = tool;
    if (Buffer.byteLength(JSON.stringify(inputSchema)) > MAX_SCHEMA_BYTES) {
      leftOut.push(`The input schema of ${name} is larger than ${MAX_SCHEMA_BYTES} bytes.`);
      continue;
    }
    const { readOnlyHint = false, idempotentHint = false, destructiveHint = false } = annotations;
    taken.add(name);
    tools.push({
      serverName,
      name,
      // Storable, because it is stored with each call.
      title: storableText((title || annotations.title || serverName).slice(0, MAX_TITLE)),
      description: firstBytes(description, MAX_DESCRIPTION_BYTES),
      inputSchema,
      // Trusts the hint, because the owner chose the server and can override it in the manifest.
      policy: readOnlyHint ? 'allow' : 'ask',
      readOnly: readOnlyHint,
      // Only if the server says so. The default of MCP would make nearly every tool destructive.
      destructive: destructiveHint && !readOnlyHint,
      idempotent: readOnlyHint || idempotentHint || idempotentTests.some((fits) => fits(serverName)),
    });
  }
  return { tools, leftOut };
}
