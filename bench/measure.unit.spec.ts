import {
  compare,
  figuresOf,
  looped,
  median,
  quantile,
  repeated,
  spreadOf,
  verdictOf,
  type Figures,
  type Side,
} from './measure.ts';

describe('median', () => {
  it.each([
    [[3, 1, 2], 2],
    [[4, 1, 2, 3], 2.5],
    [[10, 9], 9.5],
    [[7], 7],
  ])('of %p is %p', (values, expected) => expect(median(values)).toBe(expected));

  it('of nothing is not a number', () => expect(median([])).toBeNaN());

  it('leaves its input as it was', () => {
    const values = [3, 1, 2];
    median(values);
    expect(values).toEqual([3, 1, 2]);
  });
});

describe('quantile', () => {
  const hundred = Array.from({ length: 100 }, (_, i) => 100 - i);

  it.each([
    [0, 1],
    [0.5, 50],
    [0.99, 99],
    [0.991, 100],
    [1, 100],
  ])('%p of 1..100 is %p', (q, expected) => expect(quantile(hundred, q)).toBe(expected));

  it('sorts by number, not by text', () => expect(quantile([100, 9, 20], 0.5)).toBe(20));
  it('of nothing is not a number', () => expect(quantile([], 0.5)).toBeNaN());
});

describe('spreadOf', () => {
  it('is the range by the median', () => expect(spreadOf([0.9, 1, 1.1])).toBeCloseTo(0.2));
  it('of equal values is 0', () => expect(spreadOf([2, 2, 2])).toBe(0));
});

describe('verdictOf', () => {
  it.each([
    ['met at the target', 0.8, 0.1, { atLeast: 0.8 }, 'met'],
    ['missed below it', 0.79, 0.1, { atLeast: 0.8 }, 'missed'],
    ['met at an upper target', 2.5, 0.1, { atMost: 2.5 }, 'met'],
    ['missed above it', 2.51, 0.1, { atMost: 2.5 }, 'missed'],
    ['no result where the rounds differ too much, whatever the ratio', 5, 0.151, { atLeast: 0.8 }, 'no result'],
    ['a result at the largest spread', 0.9, 0.15, { atLeast: 0.8 }, 'met'],
    ['no result of figures that are no numbers', NaN, NaN, { atLeast: 0.8 }, 'no result'],
    ['no target where none is given', 0.1, 0.1, undefined, 'no target'],
    ['no target without a floor', null, 0.1, { atLeast: 0.8 }, 'no target'],
  ] as const)('%s', (_, ratio, spread, target, expected) => expect(verdictOf(ratio, spread, target)).toBe(expected));
});

test('figures of a round', () => {
  expect(figuresOf([1, 2, 3, 4], 2_000)).toEqual({ perSecond: 2, p50Ms: 2, p99Ms: 4 });
});

describe('looped', () => {
  // A pause of the machine would be longer than these rounds.
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  it('calls from every client at once and counts them all', async () => {
    const seen: number[] = [];
    const operation = async (client: number) => {
      seen.push(client);
      await jest.advanceTimersByTimeAsync(1);
      return undefined;
    };
    const { perSecond } = await looped(operation, 3)(20);
    expect(perSecond).toBeCloseTo(1_000);
    expect(seen.slice(0, 3)).toEqual([0, 1, 2]);
    expect(seen.length).toBeGreaterThanOrEqual(20);
  });

  it('takes the time that the operation answers', async () => {
    const figures = await looped(async () => {
      await jest.advanceTimersByTimeAsync(1);
      return 42;
    }, 1)(5);
    expect(figures).toMatchObject({ p50Ms: 42, p99Ms: 42 });
  });

  it('fails with the operation', async () => {
    await expect(looped(() => Promise.reject(new Error('refused')), 2)(5)).rejects.toThrow('refused');
  });
});

test('repeated calls the operation exactly as often as asked, using every client', async () => {
  const seen: number[] = [];
  const operation = async (client: number) => {
    seen.push(client);
    return 3;
  };
  await expect(repeated(operation, 4, 10)).resolves.toMatchObject({ p50Ms: 3 });
  expect(seen).toHaveLength(10);
  expect(new Set(seen)).toEqual(new Set([0, 1, 2, 3]));
});

describe('compare', () => {
  const figures = (perSecond: number): Figures => ({ perSecond, p50Ms: 1_000 / perSecond, p99Ms: 0 });

  /** Answers the rates in turn, after one warm-up; the order of calls goes to `log`. */
  const scripted = (name: string, rates: number[], log: string[]): Side => {
    const left = [1, ...rates];
    return (forMs) => {
      log.push(`${name} ${Math.round(forMs)}`);
      return Promise.resolve(figures(left.shift() ?? NaN));
    };
  };

  it('alternates, changes the order each round, and takes the median of the ratios', async () => {
    const log: string[] = [];
    const result = await compare({
      name: 'x',
      clients: 8,
      by: 'perSecond',
      subject: scripted('subject', [90, 180, 80, 85, 850], log),
      floors: { own: scripted('floor', [100, 200, 100, 100, 1_000], log) },
      target: { atLeast: 0.8 },
    });
    expect(result).toMatchObject({
      subject: { perSecond: 90 },
      floors: { own: { figures: { perSecond: 100 }, ratio: 0.85 } },
      verdict: 'met',
    });
    expect(result.floors.own?.spread).toBeCloseTo(0.1 / 0.85);
    expect(result.floors.independent).toBeUndefined();
    expect(log.slice(0, 6)).toEqual([
      'subject 3000',
      'floor 3000',
      'subject 3000',
      'floor 3000',
      'floor 3000',
      'subject 3000',
    ]);
    expect(log).toHaveLength(12);
  });

  it('rotates three sides, computes ratio and spread of each floor, and judges by the own floor', async () => {
    const log: string[] = [];
    const result = await compare({
      name: 'x',
      clients: 1,
      by: 'perSecond',
      subject: scripted('s', [90, 90, 90, 90, 90], log),
      floors: {
        independent: scripted('i', [100, 200, 300, 200, 200], log),
        own: scripted('o', [100, 100, 100, 100, 100], log),
      },
      target: { atLeast: 0.8 },
    });
    expect(result.floors.own).toMatchObject({ ratio: 0.9, spread: 0 });
    expect(result.floors.independent).toMatchObject({ ratio: 0.45, figures: { perSecond: 200 } });
    expect(result.floors.independent?.spread).toBeCloseTo((0.9 - 0.3) / 0.45);
    expect(result).toMatchObject({ spread: 0, verdict: 'met' });
    const sides = log.map((line) => line.charAt(0)).join('');
    expect(sides).toBe('soi' + 'soi' + 'ois' + 'iso' + 'soi' + 'ois');
  });

  it('compares times where asked', async () => {
    const subject = scripted('subject', [50, 50, 50, 50, 50], []);
    const own = scripted('floor', [100, 100, 100, 100, 100], []);
    const result = await compare({
      name: 'x',
      clients: 1,
      by: 'p50Ms',
      subject,
      floors: { own },
      target: { atMost: 2.5 },
    });
    expect(result).toMatchObject({ floors: { own: { ratio: 2 } }, verdict: 'met' });
  });

  it('without a floor has no ratio, and the spread of its own figures', async () => {
    const subject = scripted('subject', [100, 100, 110, 100, 100], []);
    const result = await compare({ name: 'x', clients: 1, by: 'perSecond', subject, floors: {} });
    expect(result).toMatchObject({ floors: {}, verdict: 'no target' });
    expect(result.spread).toBeCloseTo(0.1);
  });

  it('gives no verdict on a target without an own floor', async () => {
    const subject = scripted('subject', [100, 100, 100, 100, 100], []);
    const independent = scripted('floor', [100, 100, 100, 100, 100], []);
    const result = await compare({ name: 'x', clients: 1, by: 'perSecond', subject, floors: { independent } });
    expect(result).toMatchObject({ floors: { independent: { ratio: 1 } }, verdict: 'no target' });
  });
});
