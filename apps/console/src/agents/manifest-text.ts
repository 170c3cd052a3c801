import { structuredPatch } from 'diff';
import { stringify } from 'yaml';

export type Manifest = Record<string, unknown>;

/** The fields of a manifest in the order in which people write them (docs/manifests.md); the rest by the alphabet. */
const FIELDS = [
  ...['name', 'description', 'kind', 'harness', 'instructions', 'model', 'toolServers'],
  ...['tools', 'limits', 'whenBusy', 'concurrency'],
];

/** Lines that differ, beyond which the shortest diff would take seconds: then all of both is shown. */
const MAX_EDITS = 1_000;

/** What the database answers has its fields in any order. */
export function manifestText(manifest: Manifest, format: 'yaml' | 'json'): string {
  const sorted = inOrder(manifest, FIELDS);
  return format === 'json'
    ? `${JSON.stringify(sorted, null, 2)}\n`
    : stringify(sorted, { lineWidth: 0, aliasDuplicateObjects: false });
}

/** `same` lines are those around a change, `gap` stands for lines in between that are left out. */
export interface DiffLine {
  kind: 'same' | 'added' | 'removed' | 'gap';
  text: string;
}

const KINDS: Record<string, DiffLine['kind']> = { ' ': 'same', '+': 'added', '-': 'removed' };

/** What changes from one manifest to the other, in YAML; no line at all where nothing does. */
export function manifestDiff(before: Manifest, after: Manifest): DiffLine[] {
  const [old, now] = [manifestText(before, 'yaml'), manifestText(after, 'yaml')];
  const patch = structuredPatch('', '', old, now, '', '', { context: 3, maxEditLength: MAX_EDITS });
  if (patch === undefined) return [...allLines('removed', old), ...allLines('added', now)];
  return patch.hunks.flatMap((hunk, i): DiffLine[] => [
    ...(i === 0 ? [] : [{ kind: 'gap' as const, text: '⋯' }]),
    ...hunk.lines.map((line) => ({ kind: KINDS[line[0]!] ?? 'same', text: line.slice(1) })),
  ]);
}

const allLines = (kind: DiffLine['kind'], text: string): DiffLine[] =>
  text
    .split('\n')
    .slice(0, -1)
    .map((line) => ({ kind, text: line }));

function inOrder(value: unknown, order: readonly string[] = ['name']): unknown {
  if (Array.isArray(value)) return value.map((item) => inOrder(item));
  if (typeof value !== 'object' || value === null) return value;
  const place = (field: string): number => (order.includes(field) ? order.indexOf(field) : order.length);
  const entries = Object.entries(value).sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([field, child]) => [field, inOrder(child)]));
}
