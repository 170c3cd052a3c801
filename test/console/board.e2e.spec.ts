import type { Page } from 'playwright-core';
import { describeInBrowser, describeWithRedis, eventually, isNight, redisUrl } from '#testing';
import { signIn, useBrowser, type Visit } from '../support/browser.ts';
import { createAcknowledged, type Acknowledged } from '../support/client.ts';
import { hangAt } from '../support/hanging-runs.ts';
import { endOf } from '../support/model-system.ts';
import { agree } from '../support/operator.ts';
import { FakeProvider, scriptText } from '../support/fake-provider.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** Makes Bull Board poll every second instead of every 5 s. */
const ASKS_OFTEN = `if (location.protocol !== 'about:')
  localStorage.setItem('board-settings', '{"state":{"pollingInterval":1},"version":0}')`;

const SHORT = scriptText('short', { pieces: 2, pauseMs: 0, tools: [] });

/** Bull Board on the queue of one worker, which has one slot. */
function suite(queueUrl: () => string | undefined): void {
  const browser = useBrowser();
  let fakeProvider: FakeProvider;
  let system: System;
  let api: ApiProcess;
  let queue: string;

  beforeAll(async () => {
    fakeProvider = await FakeProvider.start();
    const url = queueUrl();
    const env = { ...fakeProvider.env, WORKER_SLOTS: '1' };
    system = await startSystem({
      ...(url === undefined ? {} : { queueUrl: url }),
      env,
      manifest: fakeProvider.manifest,
    });
    [api] = await Promise.all([system.startApi(), system.startWorker()]);
    queue = system.env['QUEUE_NAME']!;
  }, 180_000);

  afterAll(async () => {
    await system.stop();
    await fakeProvider.close();
  });

  /** Opens Bull Board from the console. Every request must go to the service. */
  const visit = (body: (visit: Visit) => Promise<void>) =>
    browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async (visited) => {
      const { page } = visited;
      const { origin } = new URL(api.caller.baseUrl);
      const asked = new Set<string>();
      page.on('request', (request) => void asked.add(request.url()));
      await signIn(page, system, api.caller.baseUrl);
      await page.addInitScript(ASKS_OFTEN);
      await page.goto('/console');
      await page.getByRole('link', { name: 'Queue (Bull Board)' }).click();
      await page.getByRole('main').getByRole('link', { name: queue }).click();
      await body(visited);
      expect([...asked].filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
    });

  const showsJobs = async (page: Page, status: 'Active' | 'Waiting', runs: { runId: string }[]) => {
    await page.getByRole('main').getByRole('link', { name: status }).click();
    const jobs = () => page.getByRole('link', { name: /^[0-9A-Z]{26}-\d+$/ }).allInnerTexts();
    const wanted = runs.map(({ runId }) => `${runId}-1`);
    const isShown = async () => JSON.stringify((await jobs()).sort()) === JSON.stringify(wanted.sort());
    await eventually(isShown, { what: `the jobs ${status} are ${wanted.join(', ')}`, timeoutMs: 30_000 });
  };

  test('shows waiting and active jobs, and links to their Runs and to the console', async () => {
    const active = await hangAt(fakeProvider, api.caller);
    const waiting: Acknowledged[] = [];
    for (const _ of [1, 2]) waiting.push(await createAcknowledged(api.caller, SHORT));
    await visit(async ({ page, allow }) => {
      await showsJobs(page, 'Waiting', waiting);
      await showsJobs(page, 'Active', [active]);

      // The picture of Redis and the settings have inline style, which must not violate the page's policy.
      const banner = page.getByRole('banner').getByRole('list').getByRole('button');
      for (const [button, name] of [
        [banner.first(), /details$/],
        [banner.nth(2), 'Settings'],
      ] as const) {
        const dialog = page.getByRole('dialog', { name });
        // Bull Board ignores some clicks while another dialog closes.
        const isOpen = async (): Promise<boolean> => {
          await button.click({ timeout: 1_000 }).catch(() => undefined);
          return dialog.isVisible();
        };
        await eventually(isOpen, { what: `the dialog ${name} is open` });
        await dialog.getByRole('button', { name: 'Close' }).click();
        await dialog.waitFor({ state: 'detached' });
      }

      await page.getByRole('link', { name: `${active.runId}-1` }).click();
      await page.getByRole('tab', { name: 'Options' }).click();
      await page.getByText('removeOnComplete:true').waitFor();
      const opened = page.context().waitForEvent('page');
      await page.getByRole('link', { name: 'Run', exact: true }).click();
      const run = await opened;
      await page.getByRole('link', { name: queue, exact: true }).first().click();
      await showsJobs(page, 'Active', [active]);
      await run.getByRole('button', { name: `Cancel Run ${active.runId}` }).click();
      await agree(run, 'Cancel Run');
      for (const { threadId } of waiting)
        expect(await endOf(api.caller, threadId)).toMatchObject({ status: 'completed' });
      await showsJobs(page, 'Active', []);

      await banner.last().click();
      await page.getByRole('menuitem', { name: 'Console' }).click();
      await page.getByRole('heading', { name: 'Overview' }).waitFor();

      await page.goto(`/console/queues/queue/${queue}`);
      allow(/status of 401/);
      await page.context().clearCookies();
      await page.waitForURL(({ search }) => search === `?next=${encodeURIComponent(`/queues/queue/${queue}`)}`);
    });
  }, 180_000);
}

describeInBrowser('Bull Board in the console', () => {
  describe('on PostgreSQL', () => suite(() => undefined));
  // The pages are the same; apps/api/console/board.int.spec.ts has what they are told by either.
  if (isNight) describeWithRedis('on Redis', () => suite(() => redisUrl().url));
});
