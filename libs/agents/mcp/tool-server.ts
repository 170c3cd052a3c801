import type { AgentManifest } from '../manifest.ts';
import { allowedCommand, requireNetwork, type Allowances } from '../allowances.ts';
import { resolveSecret } from '../secrets.ts';
import { secretTexts } from './hide-secrets.ts';

export type ToolServer = AgentManifest['toolServers'][number];

/** A server of a manifest with its secrets looked up. */
export interface ReadyServer {
  server: ToolServer;
  /** The absolute path of its program; null of a service. */
  command: string | null;
  /** The variables of its process, or the headers of its requests. */
  given: Record<string, string>;
  /** What of that must not be seen anywhere. */
  secrets: readonly string[];
}

/** Throws SecretMissing and NotAllowed. */
export async function readyServer(server: ToolServer, allowances: Allowances): Promise<ReadyServer> {
  const command = 'command' in server ? allowedCommand(server.command, allowances) : null;
  if ('command' in server && server.network) requireNetwork(allowances);
  const entries = Object.entries('command' in server ? server.env : server.headers);
  const secrets: string[] = [];
  const given: [string, string][] = [];
  for (const [name, value] of entries) {
    const text = typeof value === 'string' ? value : await resolveSecret(value, allowances);
    if (typeof value !== 'string') secrets.push(text);
    given.push([name, text]);
  }
  return { server, command, given: Object.fromEntries(given), secrets: secretTexts(secrets) };
}
