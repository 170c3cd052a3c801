import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Page } from 'playwright-core';
import { describeInBrowser, spawnNode, type SpawnedNode } from '#testing';
import { useBrowser, type Visit } from '../support/browser.ts';
import { startSystem, type System } from '../support/system.ts';

/** examples/chat, as a user installs and starts it: below a checkout, whose own React the page must not use. */
describeInBrowser('the chat', () => {
  const browser = useBrowser();
  let checkout: string;
  let system: System;
  let server: SpawnedNode;
  let baseUrl: string;

  beforeAll(async () => {
    checkout = await mkdtemp(join(tmpdir(), 'spool-checkout-'));
    const folder = join(checkout, 'examples/chat');
    await cp('examples/chat', folder, { recursive: true, filter: (path) => !path.includes('node_modules') });
    await cp('dist/client', join(checkout, 'dist/client'), { recursive: true });
    await symlink(resolve('node_modules'), join(checkout, 'node_modules'));
    await promisify(execFile)('npm', ['install', '--prefer-offline', '--no-audit', '--no-fund'], { cwd: folder });
    system = await startSystem({ env: { BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` } });
    const [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
    const { agentId, serviceToken } = system;
    const env = { BASE_URL: caller.baseUrl, SERVICE_TOKEN: serviceToken.token, AGENT_ID: agentId, PORT: '0' };
    server = spawnNode(join(folder, 'server.mjs'), [], env);
    baseUrl = (await server.waitForLine(/^Open (http:\S+),/m, 30_000))[1]!;
  }, 120_000);

  afterAll(async () => {
    await server?.kill('SIGKILL');
    await system?.stop();
    if (checkout) await rm(checkout, { recursive: true, force: true });
  });

  const visit = (body: (visit: Visit) => Promise<void>): Promise<void> =>
    browser.visit({ screen: 'wide', baseUrl }, async (visited) => {
      visited.allow(/40[139]/); // Before the sign-in, with a wrong password, and where the Thread exists.
      await body(visited);
    });

  async function signIn(page: Page, user: string, password = user): Promise<void> {
    await page.goto('/');
    await page.getByLabel('Name').fill(user);
    await page.getByLabel('Password').fill(password);
    await page.getByRole('button', { name: 'Sign in' }).click();
  }

  test('signs customers in, asks, shows files, stops, and is the same after a reload; others see nothing of it', async () => {
    await visit(async ({ page }) => {
      await signIn(page, 'ada', 'bob');
      await page.getByText('is wrong').waitFor();
      await signIn(page, 'ada');
      await page.getByLabel('Message').fill('Two notes /confirm 2');
      await page
        .getByLabel('Files')
        .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('hi') });
      await page.getByRole('button', { name: 'Send' }).click();
      const question = (n: number) => page.locator('p', { hasText: `"number":${n}}?` });
      await question(1).getByText('Allow', { exact: true }).click();
      await question(1).waitFor({ state: 'detached' });
      await page.reload();
      await question(2).getByText('Reject').click();
      await page.getByText('Note 1 was sent.').waitFor();
      const [download] = await Promise.all([page.waitForEvent('download'), page.getByText('a.txt').click()]);
      expect(await readFile(await download.path(), 'utf8')).toBe('hi');
      await page.getByLabel('Message').fill('Wait /think 60s');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByRole('button', { name: 'Stop' }).click();
      await page.getByText('cancelled').waitFor();
    });
    await visit(async ({ page }) => {
      await signIn(page, 'bob');
      await page.getByLabel('Message').fill('Hello');
      await page.getByRole('button', { name: 'Send' }).click();
      await page.getByText('You said: Hello').waitFor();
      expect(await page.locator('li').count()).toBe(2);
    });
  }, 60_000);
});
