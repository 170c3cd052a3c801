/** Limits concurrent work. More work waits in the order of arrival. */
export class Semaphore {
  private readonly waiting: (() => void)[] = [];
  private taken = 0;

  constructor(private readonly atOnce: number) {}

  async take<T>(work: () => Promise<T>): Promise<T> {
    if (this.taken < this.atOnce) this.taken++;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.taken--;
      else next();
    }
  }
}
