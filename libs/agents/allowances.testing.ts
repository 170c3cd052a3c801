import { NOTHING_ALLOWED, type Allowances } from './allowances.ts';

/** Manifests may name all of these variables. */
export function allowing(env: Record<string, string | undefined>, more: Partial<Allowances> = {}): Allowances {
  return { ...NOTHING_ALLOWED, env, variables: Object.keys(env), ...more };
}
