import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import type { Page, Route } from 'playwright-core';
import { describeInBrowser, eventually } from '#testing';
import { givePageKey, signIn, useBrowser } from '../support/browser.ts';
import { send, type Caller } from '../support/client.ts';
import { logIn, operatorOf } from '../support/operator.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** Wrong tokens that one address may try in a minute. */
const WRONG_TRIES = 10;
/** A session that has ended, by itself or with its token, is one on no pod after this. */
const REVOKED_MS = 5_000;

describeInBrowser('a session of the console', () => {
  const browser = useBrowser();
  let system: System;
  let pods: [ApiProcess, ApiProcess];
  let operator: Caller;

  beforeAll(async () => {
    system = await startSystem();
    pods = await Promise.all([system.startApi(), system.startApi()]);
    operator = operatorOf(system, pods[1]);
  }, 180_000);

  afterAll(() => system.stop());

  const at = (pod: ApiProcess, path = ''): string => `${new URL(pod.caller.baseUrl).origin}${path}`;
  const isAsked = (page: Page) => page.getByLabel('Operator token').waitFor();
  const isSignedIn = (page: Page) => page.getByRole('button', { name: /^Account: / }).waitFor();

  test('is valid on every pod, and ends on all pods', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: at(pods[0]) }, async ({ page, allow }) => {
      await page.goto('/console/tokens');
      await logIn(page, system.operatorToken);
      await page.getByRole('heading', { name: 'Tokens' }).waitFor();

      // Behind a balancer both pods have one origin. Here they have two, and storage belongs to one of them.
      const pageKey = await page.evaluate<string>(`localStorage.getItem('spool-page-key')`);
      await givePageKey(page.context(), pageKey);
      const other = await page.context().newPage();
      await other.goto(at(pods[1], '/console/audit'));
      await other.getByRole('heading', { name: 'Audit log' }).waitFor();
      const [cookie] = await page.context().cookies();
      const statuses = () =>
        Promise.all(
          pods.map(async (pod) => {
            const headers = { cookie: `${cookie!.name}=${cookie!.value}`, 'spool-page-key': pageKey };
            return (await fetch(at(pod, '/admin/v1/queue'), { headers })).status;
          }),
        );
      expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
      expect(await statuses()).toEqual([200, 200]);

      // The page of the other pod learns it from its next request.
      allow(/401 .*\/admin\/v1\//);
      await other.getByRole('button', { name: 'Account: on call' }).click();
      await other.getByRole('menuitem', { name: 'Sign out' }).click();
      await isAsked(other);
      await isAsked(page);
      const endedAt = performance.now();
      for (let now = [200]; now.some((status) => status !== 401);) {
        const sentAt = performance.now();
        now = await statuses();
        // Uses the time of sending, so that a pause of the machine cannot fail this.
        if (sentAt - endedAt >= REVOKED_MS) expect(now).toEqual([401, 401]);
        await setTimeout(50);
      }
    });
  }, 120_000);

  test('is of no use to a service on another port of the host, which is sent its cookie', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: at(pods[0]) }, async ({ page }) => {
      await page.goto('/console/tokens');
      await logIn(page, system.operatorToken);
      await page.getByRole('heading', { name: 'Tokens' }).waitFor();
      const received: IncomingHttpHeaders[] = [];
      const neighbour = createServer((request, response) => {
        received.push(request.headers);
        response.setHeader('content-type', 'text/html').end('<title>Neighbour</title>');
      });
      await new Promise<void>((resolve) => neighbour.listen(0, '127.0.0.1', resolve));
      try {
        const { port } = neighbour.address() as AddressInfo;
        const visited = await page.context().newPage();
        await visited.goto(`http://127.0.0.1:${port}/`);
        const stored = await visited.evaluate<number>('localStorage.length');
        const { cookie } = received[0]!;
        expect([cookie, received[0]!['spool-page-key'], stored]).toEqual([
          expect.stringMatching(/^spool_session=/),
          undefined,
          0,
        ]);
        const stolen = await fetch(at(pods[0], '/admin/v1/queue'), { headers: { cookie: cookie! } });
        expect(stolen.status).toBe(401);
        // The page goes on, and so does a new tab of it.
        await page.reload();
        await isSignedIn(page);
        const tab = await page.context().newPage();
        await tab.goto('/console/audit');
        await isSignedIn(tab);
      } finally {
        neighbour.closeAllConnections();
        neighbour.close();
      }
    });
  }, 120_000);

  test('goes on beside a cookie of its name that a sibling domain has set', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: at(pods[0]) }, async ({ page }) => {
      const value = 'A'.repeat(43);
      // Browsers send the cookie with the longer path first.
      const planted = ['/console/', '/admin/'].map((path) => ({
        name: 'spool_session',
        value,
        domain: '127.0.0.1',
        path,
      }));
      await page.context().addCookies(planted);
      await page.goto('/console/tokens');
      await logIn(page, system.operatorToken);
      await page.getByRole('heading', { name: 'Tokens' }).waitFor();
      await page.reload();
      await isSignedIn(page);
      await page.getByRole('button', { name: /^Account: / }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await isAsked(page);
    });
  }, 120_000);

  test('stays ended when an answer from before comes late', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: at(pods[0]) }, async ({ page }) => {
      await signIn(page, system, at(pods[0]));
      await page.goto('/console/checks');
      await isSignedIn(page);
      let release = (): void => undefined;
      const isSignedOut = new Promise<void>((resolve) => (release = resolve));
      await new Promise<void>((isHeld) => {
        const hold = async (route: Route): Promise<void> => {
          const response = await route.fetch();
          isHeld();
          await isSignedOut;
          await route.fulfill({ response });
        };
        void page.route('**/console/session', hold, { times: 1 });
      });
      await page.getByRole('button', { name: /^Account: / }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await isAsked(page);
      const late = page.waitForResponse((response) => response.url() === at(pods[0], '/console/session'));
      release();
      await (await late).finished();
      await page.evaluate('new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))');
      expect(await page.getByLabel('Operator token').isVisible()).toBe(true);
    });
  }, 120_000);

  // The overview is read again and again, the audit log only when a person asks for it.
  for (const path of ['/console', '/console/audit']) {
    test(`ends with its token, which is revoked by another pod: ${path}`, async () => {
      type Minted = { token: { id: string }; secret: string };
      const { body } = await send<Minted>(operator, 'POST', '/tokens', { kind: 'operator', name: 'Grace' });
      await browser.visit({ screen: 'wide', baseUrl: at(pods[0]) }, async ({ page, allow }) => {
        await signIn(page, { operatorToken: body.secret }, at(pods[0]));
        await page.goto(path);
        await isSignedIn(page);
        allow(/401 .*\/admin\/v1\//);
        expect((await send(operator, 'POST', `/tokens/${body.token.id}/revoke`)).status).toBe(200);
        const isOver = async () => (await page.getByLabel('Operator token').count()) === 1;
        await eventually(isOver, { what: 'the page has ended', timeoutMs: 20_000 });
        await logIn(page, system.operatorToken);
        await isSignedIn(page);
        expect(new URL(page.url()).pathname.replace(/\/$/, '')).toBe(path);
      });
    }, 60_000);
  }

  test('is given for the token of an operator only, and not to who tries many', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: at(pods[0]) }, async ({ page, allow, look }) => {
      // The browser writes down every answer that is a refusal.
      allow(/(401|429) .*\/console\/session/);
      await page.clock.install();
      await page.goto('/console');
      const alert = page.getByRole('alert');
      const refused = async (pod: ApiProcess, token: string): Promise<string> => {
        const answer = page.waitForResponse((response) => response.request().method() === 'POST');
        await logIn(page, token);
        await answer;
        return alert.innerText();
      };
      const wrong = 'Not an operator token, or it is expired or revoked.';
      expect(await refused(pods[0], system.personToken)).toBe(wrong);
      await look('login-refused');
      const sendTo = async (pod: ApiProcess, token: string) => {
        const { origin } = new URL(at(pod));
        const headers = { origin, 'spool-page-key': '' };
        return page.request.post(`${origin}/console/session`, { data: { token }, headers });
      };
      // The first try was above.
      for (let tried = 1; tried < WRONG_TRIES; tried++) {
        // Longer than the right one: of as many characters one could be that.
        expect((await sendTo(pods[0], `${system.operatorToken}${tried}`)).status()).toBe(401);
      }
      expect((await sendTo(pods[0], `${system.operatorToken}x`)).status()).toBe(429);

      // Also with the right one now, and at the other pod.
      expect(await refused(pods[0], system.operatorToken)).toBe('Too many attempts.');
      const button = page.getByRole('button', { name: /^Try again in [1-9]\d? s$/ });
      expect(await button.isDisabled()).toBe(true);
      await look('login-limited');
      const answer = await sendTo(pods[1], system.operatorToken);
      expect([answer.status(), Number(answer.headers()['retry-after'])]).toEqual([429, expect.any(Number)]);

      const seconds = Number(/\d+/.exec(await button.innerText())![0]);
      await page.clock.fastForward((seconds + 1) * 1_000);
      await page.getByRole('button', { name: 'Sign in', disabled: false }).waitFor();
    });
  }, 120_000);
});
