import type { Page } from 'playwright-core';
import { describeInBrowser, eventually, faultProxy, type FaultProxy } from '#testing';
import { signIn, useBrowser, type Visit } from '../support/browser.ts';
import { send, type Caller, type Run } from '../support/client.ts';
import { addAgent } from '../support/more-agents.ts';
import { operatorOf, SERVER_IS_DOWN } from '../support/operator.ts';
import { ScriptedProvider } from '../support/provider/scripted-provider.ts';
import { startSystem, type System } from '../support/system.ts';
import { everything } from '../support/tool-servers.ts';

/** A script for the model: it calls a tool that returns an image, then answers. */
const PAINT = {
  steps: [{ toolCalls: [{ name: 'everything__get-tiny-image', input: {} }] }, { text: ['Here it is.'] }],
};
/** A message whose answer takes about a second, and the whole text of the answer. */
const COUNT = '/pause 30 /pieces 40 Count';
const WHOLE = `You said: Count ${Array.from({ length: 40 }, (_, i) => i + 1).join(' ')}`;

/** The errors that the browser logs while its connections are cut. */
const LOST = new RegExp(`${SERVER_IS_DOWN.source}|ERR_SOCKET_NOT_CONNECTED`);

/** Tests the page `/chat` for an operator, through a proxy that can cut the connections. */
describeInBrowser('the states of the chat page', () => {
  const browser = useBrowser();
  let system: System;
  let provider: ScriptedProvider;
  let proxy: FaultProxy;
  /** A caller of the admin API that does not use the proxy. */
  let operator: Caller;
  let baseUrl: string;
  let guideId: string;
  let painterId: string;

  beforeAll(async () => {
    provider = await ScriptedProvider.start({ scripts: { paint: PAINT } });
    const env = {
      ...{ CHAT_PAGE: 'on', BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` },
      ...{ MODEL_KEY: provider.apiKey, ALLOWED_PRIVATE_ADDRESSES: '127.0.0.1' },
    };
    system = await startSystem({ env });
    const apiKey = { env: 'MODEL_KEY' };
    const model = { provider: 'openai-compatible', name: 'scripted', baseUrl: provider.openaiUrl, apiKey } as const;
    guideId = await addAgent(system, { name: 'guide', harness: { name: 'guide' } });
    painterId = await addAgent(system, {
      name: 'painter',
      harness: { name: 'model' },
      model,
      toolServers: [everything],
    });
    const [api] = await Promise.all([system.startApi(), system.startWorker()]);
    operator = operatorOf(system, api);
    proxy = await faultProxy(Number(new URL(api.caller.baseUrl).port));
    baseUrl = proxy.through(api.caller.baseUrl);
  }, 180_000);

  afterAll(async () => {
    await proxy?.close();
    await system?.stop();
    await provider?.close();
  });

  /** Signs in as an operator and opens an empty chat with an agent. */
  const chatWith = (agentId: string, name: string, body: (visit: Visit) => Promise<void>) =>
    browser.visit({ screen: 'wide', baseUrl }, async (visit) => {
      await signIn(visit.page, system, baseUrl);
      await visit.page.goto(`/chat/${agentId}`);
      await visit.page.getByRole('heading', { name }).waitFor();
      await body(visit);
    });

  const conversation = (page: Page) => page.getByRole('region', { name: 'Conversation' });
  const button = (page: Page, name: string) => page.getByRole('button', { name, exact: true });
  const notice = (page: Page, text: string) => page.getByRole('status').filter({ hasText: text });

  async function say(page: Page, text: string): Promise<void> {
    const field = page.getByRole('textbox', { name: 'Message' });
    await field.fill(text);
    await field.press('Enter');
  }

  /** Waits until the page's Run has ended. Asks the admin API, because the page may be offline. */
  const ended = (page: Page) =>
    eventually(
      async () => {
        const path = `/threads/${page.url().split('/').at(-1)!}`;
        const { runs } = (await send<{ runs: Run[] }>(operator, 'GET', path)).body;
        return runs[0]?.status === 'completed';
      },
      { what: 'the Run is completed' },
    );

  /** Expects that the page shows the whole answer exactly once. */
  async function expectWhole(page: Page): Promise<void> {
    await conversation(page).getByText(WHOLE, { exact: true }).waitFor();
    expect(await page.locator('[data-role=agent]').count()).toBe(1);
  }

  test('attaches a dropped file, and the answer names it', () =>
    chatWith(guideId, 'guide', async ({ page, look }) => {
      const dataTransfer = await page.evaluateHandle(`(() => {
        const dropped = new DataTransfer();
        dropped.items.add(new File(['North leads.'], 'sales.txt', { type: 'text/plain' }));
        return dropped;
      })()`);
      const hint = page.getByText('Drop files to attach them');
      await conversation(page).dispatchEvent('dragenter', { dataTransfer });
      await hint.waitFor();
      await conversation(page).dispatchEvent('drop', { dataTransfer });
      await hint.waitFor({ state: 'hidden' });
      await button(page, 'Remove sales.txt').waitFor();
      await look('chat-dropped');
      await say(page, 'What is in it?');
      await page.locator('[data-role=agent]').getByText('sales.txt').first().waitFor();
      await button(page, 'Open sales.txt').click();
      await page.getByRole('dialog').getByText('North leads.').waitFor();
    }));

  test('opens an image of an answer in a dialog', () =>
    chatWith(painterId, 'painter', async ({ page }) => {
      await say(page, 'script: paint');
      const thumbnail = page.locator('[data-role=agent]').getByAltText('image.png');
      await thumbnail.click();
      const image = page.getByRole('dialog').getByAltText('image.png');
      const isDrawn = () => page.evaluate<boolean>(`document.querySelector('[role=dialog] img')?.naturalWidth > 0`);
      await eventually(isDrawn, { what: 'the image is drawn' });
      await page.keyboard.press('Escape');
      await image.waitFor({ state: 'detached' });
    }));

  test('says that the browser is offline, and shows the whole answer once after it is online again', () =>
    chatWith(system.agentId, 'echo', async ({ page, allow }) => {
      allow(/ERR_INTERNET_DISCONNECTED/);
      allow(LOST);
      await say(page, COUNT);
      await conversation(page)
        .getByText(/\b3 4\b/)
        .waitFor();
      // Chromium keeps open streams alive when a page goes offline.
      proxy.cut();
      await page.context().setOffline(true);
      const offline = notice(page, 'You are offline.');
      await offline.waitFor();
      await ended(page);
      proxy.resume();
      await page.context().setOffline(false);
      await offline.waitFor({ state: 'detached' });
      await expectWhole(page);
    }));

  test('says that it is reconnecting, and shows the whole answer once after the connection is back', () =>
    chatWith(system.agentId, 'echo', async ({ page, allow, look }) => {
      allow(LOST);
      await say(page, COUNT);
      await conversation(page)
        .getByText(/\b3 4\b/)
        .waitFor();
      proxy.cut();
      const reconnecting = notice(page, 'Reconnecting…');
      await reconnecting.waitFor();
      await look('chat-reconnecting');
      await ended(page);
      proxy.resume();
      await reconnecting.waitFor({ state: 'detached' });
      await expectWhole(page);
    }));
});
