import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { stringify } from 'yaml';
import { BOUNDS } from '#domain';
import { ownTurn, pauseIfLong } from '#platform';
import { agentManifestSchema, type AgentManifest } from './manifest.ts';

const MAX_EDITS = BOUNDS.manifests.edits.value;

/**
 * What changes from one manifest to the other, as a unified diff of both in YAML; all of it for null, '' where nothing
 * does. Defaults are filled in, fields are in the schema's order and named values in the alphabet's. Secrets are shown as
 * the references that they are. Takes each long step in a turn of its own.
 */
export async function diffManifests(before: AgentManifest | null, after: AgentManifest): Promise<string> {
  const [was, is] = [before && (await canonical(before)), await canonical(after)];
  if (JSON.stringify(was) === JSON.stringify(is)) return '';
  const [old, now] = [was === null ? '' : await toYaml(was), await toYaml(is)];
  await ownTurn();
  const names = [before === null ? '/dev/null' : 'before', 'after'] as const;
  const headerOptions = FILE_HEADERS_ONLY;
  const options = { context: 3, maxEditLength: MAX_EDITS, headerOptions };
  return createTwoFilesPatch(...names, old, now, undefined, undefined, options) ?? replaceAll(...names, old, now);
}

async function toYaml(manifest: AgentManifest): Promise<string> {
  let text = '';
  for (const [name, value] of Object.entries(manifest)) {
    if (value === undefined) continue;
    await pauseIfLong();
    text += stringify({ [name]: value }, { lineWidth: 0, aliasDuplicateObjects: false });
  }
  return text;
}

/** The schema orders its own fields, and we what it leaves open: `jsonb` keeps no order. */
async function canonical(manifest: AgentManifest): Promise<AgentManifest> {
  await ownTurn();
  const { harness, toolServers, ...rest } = agentManifestSchema.parse(manifest);
  const { name, ...settings } = harness;
  const ordered = {
    harness: { name, ...(sorted(settings) as object) },
    toolServers: toolServers.map((server) =>
      'command' in server
        ? { ...server, env: sorted(server.env) as typeof server.env }
        : { ...server, headers: sorted(server.headers) as typeof server.headers },
    ),
  };
  await ownTurn();
  // Parsed again for the order of the fields, which `ordered` has lost.
  return agentManifestSchema.parse({ ...rest, ...ordered });
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, child]) => [key, sorted(child)]));
}

function replaceAll(oldName: string, newName: string, old: string, now: string): string {
  const [removed, added] = [old, now].map((text) => text.split('\n').slice(0, -1));
  const lines = [...(removed ?? []).map((line) => `-${line}`), ...(added ?? []).map((line) => `+${line}`)];
  const hunk = `@@ -1,${removed?.length} +1,${added?.length} @@`;
  return `--- ${oldName}\n+++ ${newName}\n${hunk}\n${lines.join('\n')}\n`;
}
