import type { AuditEntry } from '#contract';

/** The noun of the target and the path of its page, by the first part of an action. */
const PAGES: Record<string, { of: string; path?: string }> = {
  agent: { of: 'Agent', path: '/agents/' },
  thread: { of: 'Thread', path: '/threads/' },
  run: { of: 'Run', path: '/runs/' },
  token: { of: 'token' },
  chat_token: { of: 'Agent', path: '/agents/' },
  organization: { of: 'organization', path: '/organizations/' },
  member: { of: 'person', path: '/people/' },
  person: { of: 'person', path: '/people/' },
};

/** Returns the noun of the target of an entry, and its page if it has one. */
export function targetOf({ action, targetId }: Pick<AuditEntry, 'action' | 'targetId'>): { of: string; to?: string } {
  const { of, path } = PAGES[action.split('.')[0]!] ?? { of: 'target' };
  return path === undefined || targetId === null ? { of } : { of, to: `${path}${targetId}` };
}

/** The first parts of actions, as suggestions for the filter. */
export const ACTION_GROUPS = [...Object.keys(PAGES), 'queue', 'projections'];

/** For `<input type="datetime-local">`, in the reader's time zone; '' for none. */
export function toLocalInput(iso: string): string {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return '';
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

/** And back; '' where nothing whole is given. */
export function fromLocalInput(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? '' : at.toISOString();
}
