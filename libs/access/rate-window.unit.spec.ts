import fc from 'fast-check';
import { RateWindow, type Flight, type StoreCount } from './rate-window.ts';

const WINDOW_MS = 60_000;

/** A store that counts one key. The first request begins a window. The store may lose its data. */
class Store {
  private points = 0;
  private endsAt: number | null = null;

  count(points: number, now: number): StoreCount {
    this.endsAt ??= now + WINDOW_MS;
    this.points += points;
    return { points: this.points, leftMs: this.endsAt - now };
  }
}

/** A sent request. The test decides when the store counts it and responds. */
interface Sent {
  process: number;
  flight: Flight;
  answer: StoreCount | null;
  isDecided: boolean;
}

/** Processes that share one budget within one window, and a store that is fast, slow, cut off or empty. */
class Installation {
  /** The highest number of requests that each process had admitted and not given back. */
  readonly most: number[];
  /** The same for all processes together. */
  mostInTotal = 0;
  private readonly admitted: number[];
  private readonly windows: RateWindow[];
  private store = new Store();
  private sent: Sent[] = [];
  /** How many given-back requests have not reached the store. */
  private rewards = 0;
  now = 0;

  constructor(
    limit: number,
    private readonly processes: number,
  ) {
    this.windows = Array.from({ length: processes }, () => new RateWindow(limit, 0, WINDOW_MS));
    this.admitted = this.windows.map(() => 0);
    this.most = [...this.admitted];
  }

  get total(): number {
    return this.admitted.reduce((sum, count) => sum + count, 0);
  }

  /** Decides a request without asking the store. */
  alone(process: number): void {
    const window = this.windows[process]!;
    if (!window.isSpent) this.note(process, window.decideAlone(null, this.processes));
  }

  send(process: number): void {
    const window = this.windows[process]!;
    if (window.isSpent) return;
    this.sent.push({ process, flight: window.send(this.now), answer: null, isDecided: false });
  }

  /** Lets a sent request reach the store. */
  reach(which: number): void {
    const one = this.pick(which);
    if (one !== undefined) one.answer ??= this.store.count(one.flight.points, this.now);
  }

  /** Ends the wait of the request's process, which then decides without the store. */
  giveUp(which: number): void {
    const one = this.pick(which);
    if (one === undefined || one.isDecided) return;
    one.isDecided = true;
    this.note(one.process, this.windows[one.process]!.decideAlone(one.flight, this.processes));
  }

  /** Delivers the answer to the request, if the store has answered. */
  answer(which: number): void {
    const one = this.pick(which);
    if (one === undefined || one.answer === null) return;
    this.sent = this.sent.filter((other) => other !== one);
    const window = this.windows[one.process]!;
    if (one.isDecided) window.acknowledge(one.flight, one.answer, this.now);
    else this.note(one.process, window.decideByStore(one.flight, one.answer, this.now));
  }

  /** Breaks the connection of the request, before or after the store has counted it. */
  fail(which: number): void {
    const one = this.pick(which);
    if (one === undefined) return;
    this.sent = this.sent.filter((other) => other !== one);
    const window = this.windows[one.process]!;
    window.fail(one.flight);
    if (!one.isDecided) this.note(one.process, window.decideAlone(one.flight, this.processes));
  }

  /** Gives back one admitted request of the process. */
  giveBack(process: number): void {
    if (this.admitted[process]! === 0) return;
    this.admitted[process]!--;
    if (this.windows[process]!.giveBack()) this.rewards++;
  }

  /** Lets the store learn that one request was given back. It may learn so before the request itself arrives. */
  reward(): void {
    if (this.rewards === 0) return;
    this.rewards--;
    this.store.count(-1, this.now);
  }

  /** Kills the store with all connections, and starts it empty a second later. */
  lose(): void {
    while (this.sent.length > 0) this.fail(0);
    this.rewards = 0;
    this.store = new Store();
    this.now += 1_000;
  }

  private pick(which: number): Sent | undefined {
    return this.sent[which % Math.max(1, this.sent.length)];
  }

  private note(process: number, left: number | null): void {
    if (left === null) return;
    this.admitted[process]!++;
    this.most[process] = Math.max(this.most[process]!, this.admitted[process]!);
    this.mostInTotal = Math.max(this.mostInTotal, this.total);
  }
}

type Step = readonly [
  'alone' | 'send' | 'reach' | 'giveUp' | 'answer' | 'giveBack' | 'reward' | 'fail' | 'lose',
  number,
];
const step = (...kinds: Step[0][]) => fc.tuple(fc.constantFrom(...kinds), fc.nat(7));
/** Steps in which requests reach the store in any order, with early or late responses. */
const steps = (...more: Step[0][]) =>
  fc.array(step('alone', 'send', 'send', 'reach', 'reach', 'giveUp', 'answer', 'answer', ...more), { maxLength: 120 });

function run(limit: number, processes: number, all: readonly Step[]): Installation {
  const installation = new Installation(limit, processes);
  for (const [kind, n] of all) {
    installation.now++;
    if (kind === 'lose') installation.lose();
    else if (kind === 'alone' || kind === 'send' || kind === 'giveBack') installation[kind](n % processes);
    else installation[kind](n);
  }
  return installation;
}

const share = (limit: number, processes: number): number => Math.max(1, Math.floor(limit / processes));
const budget = { limit: fc.integer({ min: 1, max: 12 }), processes: fc.integer({ min: 1, max: 4 }) };
const runs = { numRuns: 3_000 };

describe('rate limit of all processes together, in one window', () => {
  test('admits exactly the budget while the store responds in time', () => {
    fc.assert(
      fc.property(fc.record({ ...budget, requests: fc.array(fc.nat(7), { maxLength: 40 }) }), (drawn) => {
        const { limit, processes, requests } = drawn;
        const all = requests.flatMap((n): Step[] => [
          ['send', n],
          ['reach', 0],
          ['answer', 0],
        ]);
        expect(run(limit, processes, all).mostInTotal).toBe(Math.min(limit, requests.length));
      }),
      runs,
    );
  });

  test('admits another request for each one that is given back while the store responds in time', () => {
    const requests = fc.array(fc.tuple(fc.nat(7), fc.boolean()), { maxLength: 40 });
    fc.assert(
      fc.property(fc.record({ ...budget, requests }), ({ limit, processes, requests: drawn }) => {
        const all: Step[] = [];
        let kept = 0;
        let most = 0;
        for (const [n, isGivenBack] of drawn) {
          all.push(['send', n], ['reach', 0], ['answer', 0]);
          if (kept === limit) continue;
          most = Math.max(most, kept + 1);
          if (isGivenBack) all.push(['giveBack', n], ['reward', 0]);
          else kept++;
        }
        const installation = run(limit, processes, all);
        expect([installation.mostInTotal, installation.total]).toEqual([most, kept]);
      }),
      runs,
    );
  });

  test('admits one share per process while the store responds too late or not at all', () => {
    fc.assert(
      fc.property(fc.record({ ...budget, all: steps('giveBack', 'reward', 'fail') }), ({ limit, processes, all }) => {
        const never = all.filter(([kind]) => kind !== 'answer');
        for (const admitted of run(limit, processes, never).most) {
          expect(admitted).toBeLessThanOrEqual(share(limit, processes));
        }
      }),
      runs,
    );
  });

  test('exceeds the budget by at most one share of each other process while the store comes and goes', () => {
    fc.assert(
      fc.property(fc.record({ ...budget, all: steps('giveBack', 'reward', 'fail') }), ({ limit, processes, all }) => {
        const most = limit + (processes - 1) * share(limit, processes);
        expect(run(limit, processes, all).mostInTotal).toBeLessThanOrEqual(most);
      }),
      runs,
    );
  });

  test('admits at most one budget per process while the store keeps losing its data', () => {
    fc.assert(
      fc.property(fc.record({ ...budget, all: steps('fail', 'lose') }), ({ limit, processes, all }) => {
        for (const admitted of run(limit, processes, all).most) expect(admitted).toBeLessThanOrEqual(limit);
      }),
      runs,
    );
  });
});
