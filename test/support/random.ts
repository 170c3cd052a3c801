/** Random numbers that a seed gives again: which one, is printed. */
export interface Random {
  readonly seed: number;
  /** 0..count-1. */
  below(count: number): number;
  pick<T>(list: readonly T[]): T;
  /** `count` different ones of 0..below-1, ascending. */
  sample(count: number, below: number): number[];
}

/** The seed of this run: `SEED=… npx jest …` repeats one. */
export const freshSeed = (): number => Number(process.env['SEED'] ?? Date.now() % 2 ** 31);

/** Prints the seed. What runs side by side is not repeated by it, only what was asked for and which faults there were. */
export function seededRandom(seed: number, what: string): Random {
  process.stderr.write(`seed ${seed}: ${what}\n`);
  return quietRandom(seed);
}

/** Without a word: for what prints its seeds itself. mulberry32. */
export function quietRandom(seed: number): Random {
  // A signed 32-bit number needs no memory of its own, an unsigned one does.
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (count: number): number => Math.floor(next() * count);
  return {
    seed,
    below,
    pick: (list) => list[below(list.length)]!,
    sample: (count, from) => {
      const chosen = new Set<number>();
      while (chosen.size < count) chosen.add(below(from));
      return [...chosen].sort((a, b) => a - b);
    },
  };
}
