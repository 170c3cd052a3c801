import { useSearchParams } from 'wouter';

/** Filters of a page, kept in the URL's query so that it can be linked. Unset: an empty string. */
export function useUrlFilter<Name extends string>(
  names: readonly Name[],
): [Record<Name, string>, (changed: Partial<Record<Name, string>>) => void] {
  const [search, setSearch] = useSearchParams();
  const filter = Object.fromEntries(names.map((name) => [name, search.get(name) ?? ''])) as Record<Name, string>;
  const change = (changed: Partial<Record<Name, string>>) =>
    setSearch(
      (before) => {
        const after = new URLSearchParams(before);
        for (const [name, value] of Object.entries<string | undefined>(changed)) {
          if (value) after.set(name, value);
          else after.delete(name);
        }
        return after;
      },
      { replace: true },
    );
  return [filter, change];
}
