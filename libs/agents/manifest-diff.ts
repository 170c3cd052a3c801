import { createTwoFilesPatch, FILE_HEADERS_ONLY } from 'diff';
import { stringify } from 'yaml';
import { agentManifestSchema, type AgentManifest } from './manifest.ts';

/** Lines that differ, beyond which the shortest diff would take seconds: then all of both is shown. */
const MAX_EDITS = 1_000;

/**
 * What changes from one manifest to the other, as a unified diff of both in YAML; all of it for null, '' where nothing
 * does. Defaults are filled in, fields are in the schema's order and named values in the alphabet's. Secrets are shown as
 * the references that they are.
 */
export function diffManifests(before: AgentManifest | null, after: AgentManifest): string {
  if (before !== null && sameManifest(before, after)) return '';
  const [old, now] = [before === null ? '' : toYaml(before), toYaml(after)];
  const names = [before === null ? '/dev/null' : 'before', 'after'] as const;
  const headerOptions = FILE_HEADERS_ONLY;
  const options = { context: 3, maxEditLength: MAX_EDITS, headerOptions };
  return createTwoFilesPatch(...names, old, now, undefined, undefined, options) ?? replaceAll(...names, old, now);
}

/** Whether both say the same, whatever the order in which they were written. */
export function sameManifest(a: AgentManifest, b: AgentManifest): boolean {
  return JSON.stringify(canonical(a)) === JSON.stringify(canonical(b));
}

function toYaml(manifest: AgentManifest): string {
  return stringify(canonical(manifest), { lineWidth: 0, aliasDuplicateObjects: false });
}

/** The schema orders its own fields, and we what it leaves open: `jsonb` keeps no order. */
function canonical(manifest: AgentManifest): AgentManifest {
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
  // Through the schema again for the order of the fields, which the line above has lost.
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
