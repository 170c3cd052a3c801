import { shortenId } from './format.ts';

export interface Named {
  id: string;
  name: string;
}

/** What can be picked, once each and by name; where two have the same name, with their ids. */
export function choices(...lists: (readonly Named[] | undefined)[]): { value: string; label: string }[] {
  const byId = new Map(lists.flatMap((list) => list ?? []).map((named) => [named.id, named]));
  const all = [...byId.values()];
  const times = new Map<string, number>();
  for (const { name } of all) times.set(name, (times.get(name) ?? 0) + 1);
  return all
    .map(({ id, name }) => ({ value: id, label: times.get(name) === 1 ? name : `${name} (${shortenId(id)})` }))
    .sort((a, b) => a.label.localeCompare(b.label));
}
