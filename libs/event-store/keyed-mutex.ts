/** A keyed mutex: runs work on the same thing one at a time, in the order of the calls. */
export class KeyedMutex {
  /** The end of the last work on each thing. */
  private readonly ends = new Map<string, Promise<void>>();

  /** Returns the result of the work, which learns whether it had to wait. */
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
