import { ByteBudget } from '#platform';

/** For contexts of Runs and steps: as much memory as they ask for. */
export function roomWithoutEnd() {
  const budget = new ByteBudget({ process: Infinity, share: Infinity });
  return { openHold: () => budget.hold('any'), makeRoom: () => undefined };
}
