import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase, describeWithPrivateRedis, describeWithRedis, redisUrl, spawnNode } from '#testing';
import { BENCHMARKS, ON_PAGE } from './benchmarks.ts';
import type { CountResult } from './counts/count-result.ts';
import { FLOOR_NAMES } from './measure.ts';
import { generatedPart } from './page.ts';
import type { NamedResult } from './report.ts';

const MAIN = 'dist/bench/main.js';
const PAGE = join(import.meta.dirname, '../docs/benchmarks.md');
/** Generous: some twenty processes start one after the other, on two cores. */
const RUN_WITHIN_MS = 280_000;

/** A JSON line of a result or of a count. */
type Line = { benchmark?: string } & (Partial<NamedResult> & Partial<CountResult>);

let folder: string;
let database: Awaited<ReturnType<typeof createTestDatabase>>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spool-bench-page-'));
  // The benchmarks make databases of their own on its server.
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true });
});

const run = async (args: string[], env: Record<string, string> = {}) => {
  const bench = spawnNode(MAIN, args, env);
  const { code } = await bench.exited;
  return { code, output: bench.output() };
};

/** Small enough to show only that everything runs. */
const tiny = (): Record<string, string> => ({
  // The role creates databases. The measured processes get a restricted one (bench/services.ts).
  DATABASE_URL: database.ownerUrl,
  REDIS_URL: redisUrl().url,
  BENCH_ROUNDS: '1',
  BENCH_ROUND_MS: '200',
  BENCH_SIZE: 'tiny',
});

const isPositive = (figure: number | undefined): boolean => Number.isFinite(figure) && (figure ?? 0) > 0;

// `counts` starts a PostgreSQL and a Redis of its own.
describeWithPrivateRedis('every benchmark of the page in a tiny form', () => {
  let lines: Line[];
  let page: string;
  const resultsOf = (name: string) => lines.filter(({ benchmark, by }) => benchmark === name && by !== undefined);

  beforeAll(async () => {
    page = join(folder, 'benchmarks.md');
    await copyFile(PAGE, page);
    const { code, output } = await run(['--write', '--page', page], tiny());
    if (code !== 0) throw new Error(`the benchmarks ended with ${code}:\n${output}`);
    const printed = output.split('\n').filter((line) => line.startsWith('{"benchmark"'));
    lines = printed.map((line) => JSON.parse(line) as Line);
  }, RUN_WITHIN_MS);

  it.each(ON_PAGE)('%s prints results whose compared figures are finite', (name) => {
    expect(lines.filter(({ benchmark }) => benchmark === name)).not.toEqual([]);
    for (const { name: measured, by, subject, floors } of resultsOf(name)) {
      const present = FLOOR_NAMES.flatMap((floor) => floors?.[floor] ?? []);
      const compared = present.map((floor) => [floor.figures[by ?? 'perSecond'], floor.ratio]);
      const figures = [subject?.perSecond, subject?.[by ?? 'perSecond'], ...compared.flat()];
      expect({ measured, positive: figures.map(isPositive) }).toEqual({ measured, positive: figures.map(() => true) });
    }
  });

  it.each(['append', 'accept', 'round-trip'])('%s is compared with both floors', (name) => {
    const withBoth = resultsOf(name).filter(({ floors }) => floors?.own && floors.independent);
    const named = { append: /^append/, accept: /^accept/, 'round-trip': /^round trip$/ }[name] ?? /^$/;
    const main = resultsOf(name).filter((result) => named.test(result.name ?? ''));
    expect(main).not.toEqual([]);
    expect(withBoth).toEqual(main);
  });

  it('compares the time to the first text with a whole Run of the independent floor', () => {
    const firstText = resultsOf('round-trip').filter(({ name }) => name === 'POST to first text');
    expect(firstText.map(({ clients }) => clients)).toEqual([1, 32]);
    for (const { floors } of firstText) expect(Object.keys(floors ?? {})).toEqual(['independent']);
  });

  it('counts statements, commands, bytes and CPU time of an accepted Thread and of a Run', () => {
    const counted = lines.filter(({ benchmark }) => benchmark === 'counts');
    const of = (name: string) => counted.filter((line) => (line.name as string) === name);
    for (const [name, least] of [
      ['accepted Thread', 1],
      ['Run', 4],
    ] as const) {
      expect(of(name).map(({ clients }) => clients)).toEqual([1, 32]);
      for (const { statements, redisCommands, transactions, bytes, cpuMs } of of(name)) {
        expect(statements).toBeGreaterThan(least - 0.5);
        expect(redisCommands).toBeGreaterThan(0);
        expect(transactions).not.toBeNull();
        for (const { sent, received } of Object.values(bytes ?? {})) {
          expect(isPositive(sent) && isPositive(received)).toBe(true);
        }
        expect(Object.values(cpuMs ?? {}).filter((ms) => ms !== null)).toHaveLength(name === 'Run' ? 4 : 3);
      }
    }
  });

  it('writes the tables to the page, and says that the size means nothing', async () => {
    const written = generatedPart(await readFile(page, 'utf8'));
    for (const name of ON_PAGE.filter((benchmark) => benchmark !== 'counts')) expect(written).toContain(`| ${name} `);
    expect(written).toContain('| accepted Thread ');
    expect(written).toContain('BENCH_SIZE=tiny');
    expect(written).not.toMatch(/NaN|undefined|Infinity/);
  });
});

it('latency prints a row for each latency that the tests report', async () => {
  const { code, output } = await run(['latency'], tiny());
  expect({ code, output }).toEqual({ code: 0, output: expect.stringMatching(/^\| latency +\| samples /m) as string });
  for (const app of ['api', 'worker', 'standalone'])
    expect(output).toMatch(new RegExp(`^\\| CPU of a start: the ${app} took +\\| 1 .*\\| (held|missed) `, 'm'));
});

it('tenants prints the delays of the event loop', async () => {
  const { code, output } = await run(['tenants'], tiny());
  expect({ code, output }).toEqual({
    code: 0,
    output: expect.stringMatching(/^\| `getAgent` \| .* ms \|$/m) as string,
  });
});

describeWithRedis('benchmarks that run only by name', () => {
  it('measure deltas, many Threads, an outage and a fleet', async () => {
    const { code, output } = await run(['deltas', 'many', 'outage', 'scaling'], tiny());
    expect({ code, output }).toEqual({ code: 0, output: expect.any(String) as string });
    expect(output).toMatch(/^\| a delta from its append to its reader, 5 Threads +\| \d+ .*\| (held|missed) /m);
    for (const name of ['create', 'list'])
      expect(output).toMatch(new RegExp(`^\\| many +\\| ${name}, 200 Threads beside 100 `, 'm'));
    expect(output).toMatch(/^\| answers of these Runs \| 8 \|$/m);
    expect(output).toMatch(/^\| 2 \| \d+ \| \d+ \| \d+\.\d\d \|$/m);
  });
});

it('refuses to write the page when only some benchmarks are named', async () => {
  const { code, output } = await run(['--write', 'append']);
  expect(code).not.toBe(0);
  expect(output).toContain('--write needs all benchmarks');
});

it('lists all benchmarks', async () => {
  expect(await run(['--list'])).toEqual({ code: 0, output: `${Object.keys(BENCHMARKS).join('\n')}\n` });
});

describeWithRedis('a benchmark whose requests are refused', () => {
  it('names request, status and body, ends with a status other than 0, and measures nothing', async () => {
    const { code, output } = await run(['round-trip'], { ...tiny(), BENCH_SETTINGS: '{"STREAMS_PER_TOKEN":"1"}' });
    expect(code).toBe(1);
    expect(output).toMatch(
      /GET \/api\/v1\/threads\/\w+\/events\/stream\?until=idle returned 429, expected 200: \{.*rate_limited/,
    );
    expect(output).not.toContain('"verdict"');
  });
});
