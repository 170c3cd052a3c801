import type { Locator, Page } from 'playwright-core';
import { describeInBrowser, eventually, type ManyThreads, redisUrl, reportLatency, seedManyThreads } from '#testing';
import { button, told, useConsole } from '../support/console-page.ts';
import { startConsoleWorld, type ConsoleWorld } from '../support/console-world.ts';

// What operators see of an installation of some age: 10,000 Threads, 17,000 Runs, 200,000 events.

/** See `timeTo`. */
const BOUND_MS = 300;
/** Of all lists. */
const PAGE = 25;

describeInBrowser('the console of many Threads', () => {
  let world: ConsoleWorld;
  let many: ManyThreads;
  let runId: string;
  /** A Thread like that of `many`, and its Run. */
  let other: { id: string; lastRunId: string };
  const { visit } = useConsole(() => world);

  beforeAll(async () => {
    world = await startConsoleWorld(redisUrl().url, async ({ database }) => {
      many = await seedManyThreads(database.pool);
    });
    const { runs } = await world.admin<{ runs: { id: string }[] }>('GET', `/threads/${many.threadId}`);
    runId = runs[0]!.id;
    const { threads } = await world.admin<{ threads: (typeof other)[] }>('GET', '/threads?limit=1');
    other = threads[0]!;
  }, 120_000);
  afterAll(() => world?.stop());

  const search = (words: string): string => `/threads?search=${encodeURIComponent(words)}`;
  const threadTab = (id: string, tab: string): string => `/threads/${id}?tab=${tab}`;
  const table = (name: string): string => `table[aria-label="${name}"] tbody tr`;
  /** `warm`: the same page with other data, after which the browser has run its code. */
  const PAGES: [name: string, warm: () => string, path: () => string, first: string][] = [
    ['overview', () => '/?window=360', () => '/', '[aria-label="Runs by status"] a'],
    ['live Runs', () => '/runs?errorCode=none', () => '/runs', table('Runs')],
    ['all Runs', () => '/runs?errorCode=none', () => '/runs?scope=all', table('Runs')],
    ['failed Runs', () => '/runs?errorCode=none', () => '/runs?scope=all&status=failed', table('Runs')],
    ['Run', () => `/runs/${other.lastRunId}`, () => `/runs/${runId}`, table('Timeline of the Run')],
    ['confirmations', () => '/nowhere', () => '/confirmations', table('Confirmations')],
    ['Threads', () => '/threads?userId=nobody', () => '/threads', table('Threads')],
    ['searched Threads', () => '/threads?userId=nobody', () => search(many.titleWords), table('Threads')],
    ['live log', () => `/threads/${other.id}`, () => `/threads/${many.threadId}`, '[role=log] [data-part]'],
    [
      'its Runs',
      () => threadTab(other.id, 'runs'),
      () => threadTab(many.threadId, 'runs'),
      table('Runs of this Thread'),
    ],
    [
      'its events',
      () => threadTab(other.id, 'events'),
      () => threadTab(many.threadId, 'events'),
      table('Stored events'),
    ],
    ['Agents', () => '/agents?name=none', () => '/agents', table('Agents')],
    ['Agent', () => `/agents/${many.agentIds[1]!}`, () => `/agents/${many.agentIds[0]!}`, '[aria-label^="About echo"]'],
    ['tokens', () => '/tokens?name=none', () => '/tokens', table('Tokens')],
    ['audit log', () => '/audit?action=none', () => '/audit', table('Audit log')],
    ['checks', () => '/nowhere', () => '/checks', table('Results of Doctor')],
  ];

  const showAll = (): Promise<void> =>
    visit('wide', async ({ page, open }) => {
      for (const [name, warm, path, first] of PAGES) {
        await open(warm());
        reportLatency(BOUND_MS, await timeTo(page, path(), first), `${name}: first data after`);
      }
    });
  test('each page shows first data', showAll, 180_000);

  test('lists go on where they end', () =>
    visit('wide', async ({ page, open }) => {
      const lists = {
        '/runs?scope=all': 'Runs',
        '/threads': 'Threads',
        '/tokens': 'Tokens',
        '/audit': 'Audit log',
        '/agents': 'Agents',
      };
      for (const [path, name] of Object.entries(lists)) {
        await open(path);
        await told(page, `${PAGE} shown`);
        await button(page, 'Load more').click();
        const rows = page.locator(table(name));
        await rows.nth(PAGE).waitFor();
        const texts = await rows.allInnerTexts();
        expect(new Set(texts).size).toBe(texts.length);
      }
    }));

  test('verify tells how far it is, stops, and goes on from there', () =>
    visit('wide', async ({ page, open, look }) => {
      await open('/checks');
      const status = page.getByRole('status', { name: 'Verify: progress' });
      const counted = status.getByText(/^[1-9][\d,]+$/).first();
      let asksOfTheBrowser = 0;
      page.on('dialog', (dialog) => {
        asksOfTheBrowser++;
        void dialog.accept();
      });
      // For a page that is not one of ours.
      const leave = (answer: string): Promise<void> =>
        page
          .getByRole('link', { name: 'Queue (Bull Board)' })
          .click()
          .then(() => button(page.getByRole('dialog'), answer).click());
      const streams = await holdStreams();
      try {
        await button(page, 'Start Verify').click();
        await streams.passUntil(counted);
        await look('verify-under-way');
        await leave('Cancel');
        await button(page, 'Stop Verify').click();
        await status.getByText('Stopped after').waitFor();
        const goOn = button(page, 'Continue Verify');
        const [asked] = await Promise.all([page.waitForRequest(/\/verify$/), goOn.click()]);
        expect(asked.postDataJSON()).toEqual({ from: expect.stringMatching(/^[0-9A-Z]{26}$/) as string });
        await streams.passUntil(counted);
        await leave('Leave');
        await page.waitForURL(/\/console\/queues/);
        expect(asksOfTheBrowser).toBe(0);
      } finally {
        await streams.release();
      }
    }));

  /** Blocks all reads of streams, so that a verification cannot end before the test looks at it. */
  async function holdStreams() {
    const lock = async () => {
      const holder = await world.database.pool.connect();
      const locked = holder.query('begin; lock table streams in access exclusive mode');
      const release = () => holder.query('rollback').finally(() => holder.release());
      return { locked, release };
    };
    const waits = (mode: 'AccessShareLock' | 'AccessExclusiveLock') =>
      eventually(
        async () => {
          const sql = `select from pg_locks where relation = 'streams'::regclass and mode = $1 and not granted`;
          return (await world.database.pool.query(sql, [mode])).rowCount !== 0;
        },
        { what: `an ${mode} is waited for` },
      );
    let held = await lock();
    await held.locked;
    return {
      release: () => held.release(),
      /** Lets the readers that wait pass, and again until the element is visible. PostgreSQL grants locks in order. */
      passUntil: async (element: Locator): Promise<void> => {
        for (let isVisible = false; !isVisible;) {
          await waits('AccessShareLock');
          const next = await lock();
          await waits('AccessExclusiveLock');
          await held.release();
          held = next;
          await held.locked;
          isVisible = await element.waitFor({ timeout: 1_000 }).then(
            () => true,
            () => false,
          );
        }
      },
    };
  }
});

/**
 * Milliseconds from going to a page inside the console, whose code the browser has run and whose data it has not, to the frame
 * in which an element of its data is on the screen: the service is asked, and the answer drawn. By way of a page without data,
 * so that nothing of the one before is taken for it.
 */
async function timeTo(page: Page, path: string, selector: string): Promise<number> {
  await page.evaluate(`history.pushState(null, '', '/console/nowhere')`);
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  return page.evaluate<number>(`new Promise((resolve) => {
    const startedAt = performance.now();
    history.pushState(null, '', ${JSON.stringify(`/console${path}`)});
    const look = () =>
      document.querySelector(${JSON.stringify(selector)})?.getClientRects().length
        ? resolve(performance.now() - startedAt)
        : requestAnimationFrame(look);
    look();
  })`);
}
