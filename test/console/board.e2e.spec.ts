import type { Page } from 'playwright-core';
import type { AuditEntry } from '#contract';
import { describeInBrowser, describeWithRedis, eventually, isNight, redisUrl } from '#testing';
import { signIn, useBrowser } from '../support/browser.ts';
import { createAcknowledged, getThread, send, type Acknowledged, type Caller } from '../support/client.ts';
import { hangAt } from '../support/hanging-runs.ts';
import { endOf } from '../support/model-system.ts';
import { agree, operatorOf } from '../support/operator.ts';
import { Outside, scriptText } from '../support/outside.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** The board asks every 5 s unless its own settings say otherwise: seconds. */
const ASKS_OFTEN = `if (location.protocol !== 'about:')
  localStorage.setItem('board-settings', '{"state":{"pollingInterval":1},"version":0}')`;

const SHORT = scriptText('short', { pieces: 2, pauseMs: 0, tools: [] });

/** Bull Board on the queue of one worker, which has one slot. */
function suite(queueUrl: () => string | undefined): void {
  const browser = useBrowser();
  let outside: Outside;
  let system: System;
  let api: ApiProcess;
  let operator: Caller;
  let queue: string;

  beforeAll(async () => {
    outside = await Outside.start();
    const url = queueUrl();
    const env = { ...outside.env, WORKER_SLOTS: '1' };
    system = await startSystem({ ...(url === undefined ? {} : { queueUrl: url }), env, manifest: outside.manifest });
    [api] = await Promise.all([system.startApi(), system.startWorker()]);
    operator = operatorOf(system, api);
    queue = system.env['QUEUE_NAME']!;
  }, 180_000);

  afterAll(async () => {
    await system.stop();
    await outside.close();
  });

  /** From the console, signed in; everything comes from the service. */
  const visit = (body: (page: Page) => Promise<void>) =>
    browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async ({ page }) => {
      const { origin } = new URL(api.caller.baseUrl);
      const asked = new Set<string>();
      page.on('request', (request) => void asked.add(request.url()));
      await signIn(page, system, api.caller.baseUrl);
      await page.addInitScript(ASKS_OFTEN);
      await page.goto('/console');
      await page.getByRole('link', { name: 'Queue (Bull Board)' }).click();
      await page.getByRole('main').getByRole('link', { name: queue }).click();
      await body(page);
      expect([...asked].filter((url) => !url.startsWith(`${origin}/`) && !url.startsWith('data:'))).toEqual([]);
    });

  const showsJobs = async (page: Page, status: 'Active' | 'Waiting', runs: { runId: string }[]) => {
    await page.getByRole('main').getByRole('link', { name: status }).click();
    const jobs = () => page.getByRole('link', { name: /^[0-9A-Z]{26}-\d+$/ }).allInnerTexts();
    const wanted = runs.map(({ runId }) => `${runId}-1`);
    const isShown = async () => JSON.stringify((await jobs()).sort()) === JSON.stringify(wanted.sort());
    await eventually(isShown, { what: `the jobs ${status} are ${wanted.join(', ')}`, timeoutMs: 30_000 });
  };

  test('shows the jobs of Runs that wait and that are under way, and leads to the Runs', async () => {
    const active = await hangAt(outside, api.caller);
    const waiting: Acknowledged[] = [];
    for (const _ of [1, 2]) waiting.push(await createAcknowledged(api.caller, SHORT));
    await visit(async (page) => {
      await showsJobs(page, 'Waiting', waiting);
      await showsJobs(page, 'Active', [active]);

      // What the queue stands on, and the board's own settings: no style of theirs breaks the page's policy.
      const banner = page.getByRole('banner').getByRole('list').getByRole('button');
      for (const [button, name] of [
        [banner.first(), /details$/],
        [banner.last(), 'Settings'],
      ] as const) {
        const dialog = page.getByRole('dialog', { name });
        // While it closes one dialog, it does not always hear that it should open the next.
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
    });
  }, 180_000);

  test('has the pause of Spool', async () => {
    const isPaused = async (): Promise<boolean> => {
      const { rows } = await system.database.pool.query<{ paused: boolean }>(
        'select paused_at is not null as paused from queue_controls where queue = $1',
        [queue],
      );
      return rows[0]?.paused ?? false;
    };
    const actions = async (): Promise<string[]> => {
      const { body } = await send<{ entries: AuditEntry[] }>(operator, 'GET', '/audit?action=queue');
      return body.entries.map(({ action, actor }) => `${action} by ${actor.name}`);
    };
    await visit(async (page) => {
      const told = page.getByRole('complementary', { name: 'Spool' }).getByRole('status');
      const asked: string[] = [];
      page.on('dialog', (dialog) => {
        asked.push(dialog.message());
        void dialog.accept();
      });
      await page.getByRole('button', { name: 'Pause', exact: true }).click();
      await told.getByText(/^Paused: /).waitFor();
      expect(asked).toEqual(['Pause the queue? Queued Runs stay queued; active Runs continue.']);
      expect([await isPaused(), await actions()]).toEqual([true, ['queue.paused by on call']]);
      const { threadId, runId } = await createAcknowledged(api.caller, SHORT);
      expect((await getThread(api.caller, threadId)).body.run).toMatchObject({ id: runId, status: 'queued' });

      await page.getByRole('button', { name: 'Resume', exact: true }).click();
      await told.getByText('Active: workers take Runs').waitFor();
      expect(await endOf(api.caller, threadId)).toMatchObject({ id: runId, status: 'completed' });
      expect([await isPaused(), await actions()]).toEqual([
        false,
        ['queue.resumed by on call', 'queue.paused by on call'],
      ]);
    });
  }, 180_000);
}

describeInBrowser('Bull Board in the console', () => {
  describe('on PostgreSQL', () => suite(() => undefined));
  // The pages are the same; apps/api/console/board.int.spec.ts has what they are told by either.
  if (isNight) describeWithRedis('on Redis', () => suite(() => redisUrl().url));
});
