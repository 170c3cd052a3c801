/**
 * The key that came with the session. A browser sends the cookie to every port of the host, but storage belongs to one scheme,
 * host and port. A service on another port that reads the cookie lacks the key. All tabs share it.
 */
const NAME = 'spool-page-key';

/** The header with the key, for every request. The key is empty if nobody has signed in. */
export const pageKeyHeader = (): Record<string, string> => ({ 'Spool-Page-Key': localStorage.getItem(NAME) ?? '' });

/** Stores the key; null removes it when the session ends. */
export function keepPageKey(key: string | null): void {
  if (key === null) localStorage.removeItem(NAME);
  else localStorage.setItem(NAME, key);
}
