import type { AgentManifest } from '../manifest.ts';
import { resolveSecret } from '../secrets.ts';
import { secretTexts } from './hide-secrets.ts';

export type ToolServer = AgentManifest['toolServers'][number];

/** A server of a manifest with its secrets looked up. */
export interface ReadyServer {
  server: ToolServer;
  /** The variables of its process, or the headers of its requests. */
  given: Record<string, string>;
  /** What of that must not be seen anywhere. */
  secrets: readonly string[];
}

/** Throws SecretMissing. */
export async function readyServer(server: ToolServer, env: Record<string, string | undefined>): Promise<ReadyServer> {
  const entries = Object.entries('command' in server ? server.env : server.headers);
  const secrets: string[] = [];
  const given: [string, string][] = [];
  for (const [name, value] of entries) {
    const text = typeof value === 'string' ? value : await resolveSecret(value, env);
    if (typeof value !== 'string') secrets.push(text);
    given.push([name, text]);
  }
  return { server, given: Object.fromEntries(given), secrets: secretTexts(secrets) };
}
