import { getDisplayName } from '@modelcontextprotocol/sdk/shared/metadataUtils.js';
import type { Tool as ListedTool } from '@modelcontextprotocol/sdk/types.js';
import { storableText } from '#domain';
import { firstBytes } from '../first-bytes.ts';
import type { Tool } from '../harness.ts';
import { fitsPattern } from '../tool-policy.ts';
import { toolNames } from './tool-names.ts';
import type { ToolServer } from './tool-server.ts';

const MAX_TITLE = 255;
const MAX_DESCRIPTION_BYTES = 8 * 1024;
const MAX_SCHEMA_BYTES = 64 * 1024;

/** A tool, and what its server calls it. */
export type ServerTool = Omit<Tool, 'execute'> & { serverName: string };

/** What a server lists as agents see it. `leftOut` says why of each tool that they do not see. */
export function describeTools(
  server: Pick<ToolServer, 'name' | 'idempotent'>,
  listed: readonly ListedTool[],
): { tools: ServerTool[]; leftOut: string[] } {
  const names = toolNames(
    server.name,
    listed.map(({ name }) => name),
  );
  const tools: ServerTool[] = [];
  const leftOut: string[] = [];
  const byName = new Map(listed.toReversed().map((tool) => [tool.name, tool]));
  const taken = new Set<string>();
  for (const [serverName, name] of names) {
    const tool = byName.get(serverName);
    if (tool === undefined) continue;
    if (taken.has(name)) {
      leftOut.push(`Another tool has the name ${name} already.`);
      continue;
    }
    const { annotations = {}, description = '', inputSchema } = tool;
    if (Buffer.byteLength(JSON.stringify(inputSchema)) > MAX_SCHEMA_BYTES) {
      leftOut.push(`The input schema of ${name} is larger than ${MAX_SCHEMA_BYTES} bytes.`);
      continue;
    }
    const { readOnlyHint = false, idempotentHint = false } = annotations;
    taken.add(name);
    tools.push({
      serverName,
      name,
      // It is stored with each call.
      title: storableText(getDisplayName(tool).slice(0, MAX_TITLE)),
      description: firstBytes(description, MAX_DESCRIPTION_BYTES),
      inputSchema,
      // A hint is the server's word, and so is all that its tools do: the owner chose it, and can say otherwise.
      policy: readOnlyHint ? 'allow' : 'ask',
      readOnly: readOnlyHint,
      idempotent:
        readOnlyHint || idempotentHint || server.idempotent.some((pattern) => fitsPattern(pattern, serverName)),
    });
  }
  return { tools, leftOut };
}
