import type { z } from 'zod';

/** What is wrong with a manifest, and where in it. Never holds a value of the manifest: it might be a secret. */
export interface ManifestIssue {
  path: readonly (string | number)[];
  /** Whether the field's value is wrong, or that there is such a field. */
  at: 'value' | 'key';
  message: string;
}

type Issue = z.core.$ZodIssue;

/** What a schema says against a value, one issue a field; none where it is right. */
export function manifestIssues(schema: z.ZodType, value: unknown): ManifestIssue[] {
  const { error } = schema.safeParse(value, { error: readable });
  return error === undefined ? [] : error.issues.flatMap((issue) => flatten(issue, []));
}

/** `tools.0.policy: must be allow, ask or deny`. */
export function issueText({ path, message }: ManifestIssue): string {
  return path.length === 0 ? message : `${path.map(segment).join('.')}: ${message}`;
}

function segment(key: string | number): string {
  const text = String(key);
  return /^[\w-]{1,80}$/.test(text) ? text : JSON.stringify(text.slice(0, 80));
}

function flatten(issue: Issue, parent: readonly (string | number)[]): ManifestIssue[] {
  const path = [...parent, ...(issue.path as (string | number)[])];
  switch (issue.code) {
    case 'unrecognized_keys':
      return issue.keys.map((key) => ({ path: [...path, key], at: 'key', message: 'is not a known field' }));
    case 'invalid_key':
      return [{ path, at: 'key', message: issue.issues[0]?.message ?? issue.message }];
    case 'invalid_union': {
      const meant = meantBranch(issue.errors);
      return meant?.flatMap((nested) => flatten(nested, path)) ?? [{ path, at: 'value', message: issue.message }];
    }
    default:
      return [{ path, at: 'value', message: issue.message }];
  }
}

/**
 * The alternative whose fields were given, whatever their values; null where none does better than the others: then the
 * union speaks for itself.
 */
function meantBranch(branches: readonly Issue[][]): Issue[] | null {
  const possible = branches.filter((issues) => !issues.some(isOtherType));
  const misfits = possible.map((issues) => issues.filter(isMisfit).length);
  const fewest = Math.min(...misfits);
  const [best, ...others] = possible.filter((_, i) => misfits[i] === fewest);
  return best !== undefined && others.length === 0 ? best : null;
}

/** Text where a map was wanted, and the like: not this alternative at all. */
function isOtherType(issue: Issue): boolean {
  if (issue.path.length > 0) return false;
  if (issue.code === 'invalid_union') return issue.errors.every((branch) => branch.some(isOtherType));
  return issue.code === 'invalid_type';
}

const MISSING = 'is missing';

const isMisfit = ({ code, path, message }: Issue): boolean =>
  (code === 'unrecognized_keys' && path.length === 0) || (path.length === 1 && message === MISSING);

const TYPES: Record<string, string> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  array: 'a list',
  object: 'a map',
  record: 'a map',
};

/** Messages in our words, where the schema has none of its own. */
const readable: z.core.$ZodErrorMap = (issue) => {
  if (issue.input === undefined) return MISSING;
  switch (issue.code) {
    case 'invalid_type':
      return `must be ${TYPES[issue.expected] ?? issue.expected}`;
    case 'invalid_value':
      return `must be ${oneOf(issue.values.map(String))}`;
    case 'too_small':
      if (issue.origin === 'string') return 'must not be empty';
      return `must be ${issue.inclusive === false ? 'more than' : 'at least'} ${String(issue.minimum)}`;
    case 'too_big':
      return `must ${TOO_BIG[issue.origin]?.(String(issue.maximum)) ?? `be at most ${String(issue.maximum)}`}`;
    default:
      return undefined;
  }
};

const TOO_BIG: Record<string, (maximum: string) => string> = {
  string: (maximum) => `have at most ${maximum} characters`,
  array: (maximum) => `have at most ${maximum} entries`,
};

function oneOf(values: string[]): string {
  const last = values.at(-1) ?? '';
  return values.length < 2 ? last : `${values.slice(0, -1).join(', ')} or ${last}`;
}
