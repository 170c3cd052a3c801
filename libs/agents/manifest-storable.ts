import type { z } from 'zod';
import { BOUNDS, isStorable } from '#domain';

const MAX_DEPTH = BOUNDS.manifests.depth.value;

/**
 * Refuses what PostgreSQL's `jsonb` would refuse or change: NUL and lone surrogates in text, numbers without end. For the
 * whole manifest, because a harness's own settings may be anything. Tells the first only.
 */
export function refuseUnstorable(manifest: unknown, context: z.RefinementCtx): void {
  const found = findUnstorable(manifest, []);
  if (found !== null) context.addIssue({ code: 'custom', ...found });
}

interface Unstorable {
  path: (string | number)[];
  message: string;
}

function findUnstorable(value: unknown, path: (string | number)[]): Unstorable | null {
  if (typeof value === 'string' && !isStorable(value))
    return { path, message: 'must not contain NUL or lone surrogates' };
  if (typeof value === 'number' && !Number.isFinite(value)) return { path, message: 'must be a finite number' };
  if (typeof value !== 'object' || value === null) return null;
  // An alias may be deeper than the text looks.
  if (path.length > MAX_DEPTH) return { path: path.slice(0, 2), message: 'is nested too deeply' };
  for (const [key, child] of Object.entries(value)) {
    if (!isStorable(key))
      return { path, message: 'must not contain NUL or lone surrogates in the names of its fields' };
    const found = findUnstorable(child, [...path, Array.isArray(value) ? Number(key) : key]);
    if (found !== null) return found;
  }
  return null;
}
