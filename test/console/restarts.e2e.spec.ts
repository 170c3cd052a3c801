import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page, Response } from 'playwright-core';
import { findFreePort } from '#platform';
import { describeInBrowser, eventually } from '#testing';
import { signIn, useBrowser } from '../support/browser.ts';
import { createAcknowledged, send } from '../support/client.ts';
import { endOf } from '../support/model-system.ts';
import { agree, operatorOf, problemOf, SERVER_IS_DOWN } from '../support/operator.ts';
import { FakeProvider, scriptText } from '../support/fake-provider.ts';
import { showsTheLog } from '../support/shown-log.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** What is on the screen when its server goes away, and comes back where it was. */
describeInBrowser('the console survives a restart of the server', () => {
  const browser = useBrowser();
  let fakeProvider: FakeProvider;
  let system: System;
  let api: ApiProcess;

  beforeAll(async () => {
    fakeProvider = await FakeProvider.start();
    system = await startSystem({ env: fakeProvider.env, manifest: fakeProvider.manifest });
    // Nobody else is given it by chance while it is down.
    const PORT = String(await findFreePort());
    [api] = await Promise.all([system.startApi({ PORT }), system.startWorker()]);
  }, 180_000);

  afterAll(async () => {
    await system.stop();
    await fakeProvider.close();
  });

  const startAgain = async (): Promise<void> => {
    api = await system.startApi({ PORT: new URL(api.caller.baseUrl).port });
  };

  /** What only a page that was never loaded again still knows. */
  const mark = (page: Page) => page.evaluate('globalThis.isTheSame = true');
  const expectTheSame = async (page: Page) => expect(await page.evaluate('globalThis.isTheSame')).toBe(true);

  test('a Thread’s page follows its Run to the end, past a kill -9 and a restart', async () => {
    const points = { half: fakeProvider.hold('half said'), tool: fakeProvider.hold('tool asked') };
    const text = scriptText('live', { pieces: 24, pauseMs: 20, tools: ['lookup'] });
    const { threadId } = await createAcknowledged(api.caller, text);

    await browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async ({ page, allow }) => {
      allow(SERVER_IS_DOWN);
      await signIn(page, system, api.caller.baseUrl);
      await page.goto(`/console/threads/${threadId}`);
      await mark(page);
      const connection = page.getByRole('status', { name: 'Connection' });
      const stored: number[] = [];
      const isLive = async (): Promise<void> => {
        await connection.getByText('Live', { exact: true }).waitFor();
        stored.push((await showsTheLog(page, api.caller, threadId)).length);
      };
      await points.half.reached;
      await isLive();

      await api.process.kill('SIGKILL');
      await connection.getByText('Reconnecting').waitFor();
      // The worker goes on meanwhile, up to the tool.
      points.half.release();
      await points.tool.reached;
      await startAgain();
      await isLive();

      const again = fakeProvider.hold('half said');
      points.tool.release();
      await again.reached;
      // Without anybody doing anything to the page.
      await isLive();

      await api.process.kill('SIGTERM');
      await connection.getByText('Reconnecting').waitFor();
      await startAgain();
      again.release();
      await endOf(api.caller, threadId);
      await isLive();
      expect(stored).toEqual([...new Set(stored)].sort((a, b) => a - b));
      await page.getByRole('region', { name: 'About this Thread' }).getByText('Idle').waitFor();
      await expectTheSame(page);
    });
  }, 180_000);

  test('a page that was never opened is there while the server is away, and goes on', async () => {
    const assets = await readdir(join(import.meta.dirname, '../../dist/apps/console/assets'));
    // Only the chat page loads its own script.
    const scripts = assets.filter((name) => name.endsWith('.js') && !name.startsWith('chat-app-'));
    await browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async ({ page, allow }) => {
      allow(SERVER_IS_DOWN);
      await signIn(page, system, api.caller.baseUrl);
      await page.goto('/console/threads');
      const loaded = () => page.evaluate<string[]>(`performance.getEntriesByType('resource').map(({ name }) => name)`);
      const hasAll = async () => {
        const names = await loaded();
        return scripts.every((script) => names.some((name) => name.endsWith(`/${script}`)));
      };
      await eventually(hasAll, { what: 'all pages are loaded' });
      await mark(page);

      await api.process.kill('SIGKILL');
      await page.getByRole('link', { name: 'Audit log' }).click();
      await page.getByRole('heading', { name: 'Audit log' }).waitFor();
      await startAgain();
      // There are only sign-ins, which are hidden.
      await page.getByText('No entries yet.').waitFor();
      await page.getByRole('link', { name: 'Overview' }).click();
      await page.getByRole('img', { name: /^Chart: Throughput/ }).waitFor();
      await expectTheSame(page);
    });
  }, 180_000);

  test('behind a proxy that answers in its place it is away too, and told of once', async () => {
    await browser.visit({ screen: 'wide', baseUrl: api.caller.baseUrl }, async ({ page, allow }) => {
      allow(/502/);
      await signIn(page, system, api.caller.baseUrl);
      await page.goto('/console');
      await page.getByText('No problems:').waitFor();
      await page.route(/\/(admin|session)/, (route) => route.fulfill({ status: 502 }));
      const isRefused = (response: Response): boolean => response.status() === 502 && /overview/.test(response.url());
      await page.waitForResponse(isRefused);
      // The second try, after which it has failed.
      await page.waitForResponse(isRefused);
      await page.getByRole('status').filter({ hasText: 'No connection' }).waitFor();
      await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
      expect(await page.getByText('The service answered 502.').count()).toBe(0);
      await page.unrouteAll();
      await page.getByText('No connection').waitFor({ state: 'detached' });
    });
  }, 180_000);

  test('the overview keeps what it has read, says that it is old, and goes on', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: api.caller.baseUrl }, async ({ page, allow, look }) => {
      allow(SERVER_IS_DOWN);
      await signIn(page, system, api.caller.baseUrl);
      await page.goto('/console');
      await page.getByText('No problems:').waitFor();
      await mark(page);

      await api.process.kill('SIGKILL');
      const banner = page.getByRole('status').filter({ hasText: 'No connection' });
      await banner.waitFor();
      await page.getByText(/^No problems [^:]+\.$/).waitFor();
      await page.getByRole('region', { name: 'Runs by status' }).getByText('Completed').waitFor();
      await page.getByRole('table', { name: 'Workers' }).waitFor();
      await page.getByRole('button', { name: 'Pause the queue' }).click();
      await agree(page, 'Pause the queue');
      await page.getByText('The service cannot be reached.').first().waitFor();
      await look('overview-away');

      await startAgain();
      await banner.waitFor({ state: 'detached' });
      await send(operatorOf(system, api), 'POST', '/queue/pause');
      await problemOf(page, 'The queue is paused').getByRole('button', { name: 'Resume the queue' }).click();
      await page.getByText('No problems:').waitFor();
      // Also where the server was gone before they were loaded.
      await page.getByRole('img', { name: /^Chart: Throughput/ }).waitFor();
      await expectTheSame(page);
    });
  }, 180_000);
});
