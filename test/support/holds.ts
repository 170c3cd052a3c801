/** A call that is held at a point: there it stays until it is released, or its caller is gone. */
export interface Hold<Call> {
  /** The first call that came to the point. */
  reached: Promise<Call>;
  release(): void;
}

interface Waiting<Point, Call> {
  point: Point;
  wanted: (call: Call) => boolean;
  pass: (call: Call) => Promise<void>;
}

/** Where calls from processes under test can be held, so that a test can do something to them exactly there. */
export class Holds<Point, Call> {
  private readonly waiting = new Set<Waiting<Point, Call>>();

  hold(point: Point, wanted: (call: Call) => boolean = () => true): Hold<Call> {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    const reached = new Promise<Call>((resolve) => {
      const one: Waiting<Point, Call> = {
        point,
        wanted,
        pass: (call) => {
          this.waiting.delete(one);
          resolve(call);
          return released;
        },
      };
      this.waiting.add(one);
    });
    return { reached, release };
  }

  async pass(point: Point, call: Call, gone: Promise<void>): Promise<void> {
    const hold = [...this.waiting].find((one) => one.point === point && one.wanted(call));
    if (hold) await Promise.race([hold.pass(call), gone]);
  }
}
