/** Has work on the same thing done one after the other, in the order in which it came. */
export class Lines {
  /** Where the line before each thing ends. */
  private readonly ends = new Map<string, Promise<void>>();

  /** What the work comes to; it is told whether it had to wait. */
  async run<T>(thing: string, work: (waited: boolean) => Promise<T>): Promise<T> {
    const ahead = this.ends.get(thing);
    const turn = ahead ? ahead.then(() => work(true)) : work(false);
    const end = turn.then(nothing, nothing);
    this.ends.set(thing, end);
    try {
      return await turn;
    } finally {
      if (this.ends.get(thing) === end) this.ends.delete(thing);
    }
  }
}

const nothing = (): void => undefined;
