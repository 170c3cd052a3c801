import { ByteBudget, type ByteHold } from './byte-budget.ts';

const LIMITS = { process: 100, share: 60 };
const { signal: never } = new AbortController();

it('admits holds up to the share of their owner and the budget of the process', () => {
  let held = 0;
  const budget = new ByteBudget(LIMITS, (bytes) => (held = bytes));
  const [one, two, other] = [budget.hold('a'), budget.hold('a'), budget.hold('b')];
  expect(one.growTo(40)).toBe(true);
  expect(two.growTo(21)).toBe(false); // beyond the share of a
  expect(two.growTo(20)).toBe(true);
  expect(other.growTo(41)).toBe(false); // beyond the budget
  expect(other.growTo(40)).toBe(true);
  expect(held).toBe(100);
  one.release();
  expect(held).toBe(60);
  expect(other.growTo(60)).toBe(true);
});

it('leaves room for owners that hold nothing, however much others request', () => {
  const budget = new ByteBudget({ process: 100, share: 50 });
  const held = [...'abcd'].map((owner) => {
    const holds = Array.from({ length: 10 }, () => budget.hold(owner).growTo(10));
    return holds.filter(Boolean).length * 10;
  });
  expect(held).toEqual([50, 20, 10, 10]);
  expect(budget.hold('e').growTo(10)).toBe(true);
});

it('counts the growth of a hold, and nothing after its release', () => {
  let held = 0;
  const budget = new ByteBudget(LIMITS, (bytes) => (held = bytes));
  const hold = budget.hold('a');
  for (const bytes of [10, 30, 20]) expect(hold.growTo(bytes)).toBe(true);
  expect(held).toBe(20);
  hold.release();
  hold.release();
  expect(hold.growTo(1)).toBe(false);
  hold.count(1);
  expect(held).toBe(0);
});

it('counts bytes that are already in memory beyond every limit, and admits no more until their release', () => {
  const budget = new ByteBudget(LIMITS);
  const [one, two] = [budget.hold('a'), budget.hold('b')];
  one.count(200);
  expect(two.growTo(1)).toBe(false);
  expect(one.growTo(150)).toBe(true);
  expect(two.growTo(1)).toBe(false);
  one.release();
  expect(two.growTo(1)).toBe(true);
});

it('does not count small holds, so that they always fit', () => {
  let held = 0;
  const budget = new ByteBudget({ ...LIMITS, small: 5 }, (bytes) => (held = bytes));
  budget.hold('a').count(100);
  const small = budget.hold('a');
  expect(small.growTo(5)).toBe(true);
  expect(small.growTo(6)).toBe(false);
  expect(held).toBe(100);
});

it('admits small holds before waiting ones', async () => {
  const budget = new ByteBudget({ ...LIMITS, small: 5 });
  const large = budget.hold('b');
  large.count(100);
  const waiting = budget.reserve('a', 50, never);
  await budget.reserve('a', 5, never);
  large.release();
  await waiting;
});

describe('reserve', () => {
  interface Waiting {
    name: string;
    hold: Promise<ByteHold>;
  }
  const admitted: string[] = [];
  beforeEach(() => admitted.splice(0));

  const ask = (budget: ByteBudget, name: string, bytes: number, signal = never): Waiting => {
    const hold = budget.reserve(name[0]!, bytes, signal);
    hold.then(
      () => admitted.push(name),
      () => admitted.push(`not ${name}`),
    );
    return { name, hold };
  };
  const giveBack = async ({ hold }: Waiting): Promise<void> => (await hold).release();
  const settled = () => new Promise(setImmediate);

  it('waits for room in the order of arrival, and reports the number of waiting callers', async () => {
    let waiting = 0;
    const budget = new ByteBudget(LIMITS, (_bytes, count) => (waiting = count));
    const [first, second] = [ask(budget, 'a1', 50), ask(budget, 'a2', 50), ask(budget, 'a3', 5)];
    await settled();
    // The third would fit. It must not starve the second.
    expect([admitted, waiting]).toEqual([['a1'], 2]);
    await giveBack(first);
    await settled();
    expect([admitted, waiting]).toEqual([['a1', 'a2', 'a3'], 0]);
    await giveBack(second);
  });

  it('passes over an owner that is beyond its share', async () => {
    const budget = new ByteBudget(LIMITS);
    const first = ask(budget, 'a1', 50);
    ask(budget, 'a2', 50);
    ask(budget, 'b1', 50);
    await settled();
    expect(admitted).toEqual(['a1', 'b1']);
    await giveBack(first);
    await settled();
    expect(admitted).toEqual(['a1', 'b1', 'a2']);
  });

  it('admits the owner that holds least next, and keeps the room for it', async () => {
    const budget = new ByteBudget({ process: 100, share: 100 });
    const [, first] = [ask(budget, 'a1', 20), ask(budget, 'b1', 40)];
    ask(budget, 'a2', 50);
    ask(budget, 'c1', 65);
    ask(budget, 'a3', 10);
    await settled();
    // There is room for a3. It is kept for c1.
    expect(admitted).toEqual(['a1', 'b1']);
    await giveBack(first);
    await settled();
    expect(admitted).toEqual(['a1', 'b1', 'c1']);
  });

  it('admits a hold beyond every limit if nothing else is held, and nothing beside it', async () => {
    const budget = new ByteBudget(LIMITS);
    const large = ask(budget, 'a1', 200);
    ask(budget, 'a2', 1);
    ask(budget, 'b1', 1);
    await settled();
    expect(admitted).toEqual(['a1']);
    const hold = await large.hold;
    expect(hold.growTo(300)).toBe(true);
    expect(budget.hold('b').growTo(1)).toBe(false);
    hold.release();
    await settled();
    expect(admitted.toSorted()).toEqual(['a1', 'a2', 'b1']);
  });

  it('admits a hold beyond every limit beside kept bytes, which count like others', async () => {
    const budget = new ByteBudget(LIMITS);
    const [list, others] = [budget.hold('a'), budget.hold('b')];
    for (const hold of [list, others]) {
      hold.keep();
      expect(hold.growTo(30)).toBe(true);
    }
    expect(budget.hold('a').growTo(31)).toBe(false);
    const large = ask(budget, 'a1', 200);
    await settled();
    expect(admitted).toEqual(['a1']);
    const hold = await large.hold;
    expect(hold.growTo(300)).toBe(true);
    expect(list.growTo(31)).toBe(false);
    for (const one of [list, others]) one.release();
    const more = ask(budget, 'a2', 200);
    hold.release();
    await settled();
    expect(admitted).toEqual(['a1', 'a2']);
    await giveBack(more);
  });

  it('stops waiting when the signal aborts, and admits the callers behind it', async () => {
    let seen: number[] = [];
    const budget = new ByteBudget({ process: 100, share: 100 }, (...held) => (seen = held));
    const first = ask(budget, 'a1', 60);
    const abort = new AbortController();
    const second = ask(budget, 'b1', 90, abort.signal);
    const third = ask(budget, 'b2', 30);
    await settled();
    expect(admitted).toEqual(['a1']);
    abort.abort(new Error('enough'));
    await expect(second.hold).rejects.toThrow('enough');
    await settled();
    expect(admitted.toSorted()).toEqual(['a1', 'b2', 'not b1']);
    await Promise.all([first, third].map(giveBack));
    expect(seen).toEqual([0, 0]);
  });
});
