import type { Page } from 'playwright-core';
import { describeInBrowser, eventually } from '#testing';
import { HOSTILE } from '../../apps/console/src/chat/hostile-markdown.testing.ts';
import { Balancer } from '../support/balancer.ts';
import { SCREENS, signIn, useBrowser } from '../support/browser.ts';
import { send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { agree, logIn, operatorOf, SERVER_IS_DOWN } from '../support/operator.ts';
import { startSystem, type ApiProcess, type System } from '../support/system.ts';

/** Joins short texts to fewer messages. Long texts stay separate, because their markup could swallow the text after them. */
function together(texts: string[]): string[] {
  const isShort = (text: string): boolean => text.length < 500;
  const short = texts.filter(isShort);
  const groups = Array.from({ length: Math.ceil(short.length / 8) }, (_, i) => short.slice(8 * i, 8 * i + 8));
  return [...groups.map((group) => group.join('\n\n')), ...texts.filter((text) => !isShort(text))];
}

const SCRIPT = Buffer.from('<script>alert(1)</script>');
/** Matches the text that the dialog shows for each file. */
const SHOWN_FILE = /alert|cannot be shown/;
/** Hostile names. The test opens each file. Names have no slashes, because the service rejects them. */
const FILE_NAMES = [
  '<svg onload=alert(1)>.html',
  '"><iframe srcdoc="<script>alert(1)<&script>">.md',
  "javascript:alert('1').txt",
  '![x](https:evil.example).md',
  '\u202egnp.exe.txt',
  'picture" onerror="alert(1).png',
  '%2e%2e%2fconsole%2fsession.json',
];

/** Tests the page `/chat` with the echo Agent, which obeys words with a slash, such as `/confirm`. */
describeInBrowser('the chat page', () => {
  const browser = useBrowser();
  let system: System;
  let pods: [ApiProcess, ApiProcess];
  let balancer: Balancer;
  /** The application's service token, through the balancer. */
  let service: Caller;

  beforeAll(async () => {
    const env = { CHAT_PAGE: 'on', BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` };
    system = await startSystem({ env, manifest: { limits: { maxLosses: 5, providerRetryMs: 1_000 } } });
    pods = await Promise.all([system.startApi(), system.startApi()]);
    await system.startWorker();
    balancer = await Balancer.start();
    for (const { caller } of pods) await balancer.add(caller);
    service = { ...balancer.through(pods[0].caller), token: system.serviceToken.token };
  }, 180_000);

  afterAll(async () => {
    await balancer?.close();
    await system?.stop();
  });

  const VERBS = ['read', 'send', 'decide', 'upload', 'manage'];

  const rightsOf = (userId: string) => ({ userId, agentId: system.agentId, verbs: VERBS });

  /** Returns the path of a link for a person without a session. */
  async function linkOf(userId: string, threadId = ''): Promise<string> {
    const { body } = await send<{ token: string }>(service, 'POST', '/browser-tokens', rightsOf(userId));
    return `/chat/${system.agentId}${threadId && `/${threadId}`}#token=${body.token}`;
  }

  async function begin(userId: string, text: string): Promise<string> {
    const input = { type: 'user.message', content: [{ type: 'text', text }] };
    const path = `/agents/${system.agentId}/threads`;
    return (await send<ThreadAnswer>(service, 'POST', path, { userId, input })).body.thread.id;
  }

  const field = (page: Page) => page.getByRole('textbox', { name: 'Message' });
  const button = (page: Page, name: string | RegExp) =>
    page.getByRole('button', { name, ...(typeof name === 'string' ? { exact: true } : {}) });
  const answers = (page: Page) => page.locator('[data-role=assistant], [data-role=agent]');
  const says = (page: Page, text: string | RegExp) =>
    page.getByRole('region', { name: 'Conversation' }).getByText(text).last();

  async function say(page: Page, text: string): Promise<void> {
    // Nothing can be sent while a Run is active.
    await button(page, 'Send').waitFor();
    await field(page).fill(text);
    await field(page).press('Enter');
  }

  test.each(SCREENS)(
    'an operator chats, decides, retries, stops and sends files (%s)',
    async (screen) => {
      await browser.visit({ screen, baseUrl: service.baseUrl }, async ({ page, look, allow }) => {
        await page.goto('/chat');
        await logIn(page, system.operatorToken);
        await page.getByRole('heading', { name: 'echo' }).waitFor();
        await look('chat-empty');

        await say(page, '/think 200ms /tool A table:\n\n| a | b |\n|---|---|\n| 1 | `two` |');
        await page.getByRole('region', { name: 'Conversation' }).getByRole('table').waitFor();
        await says(page, 'Thoughts').waitFor();

        await say(page, '/confirm 1 Tell them');
        await button(page, 'Allow send_note').waitFor();
        await look('chat-approval');
        await button(page, 'Reject send_note').click();
        await says(page, 'Rejected').waitFor();

        await say(page, '/fail-retryable What now?');
        await button(page, 'Retry').waitFor();
        await look('chat-failed');
        await button(page, 'Retry').click();
        await eventually(async () => (await answers(page).count()) === 4, { what: 'the retry has an answer' });

        await say(page, '/pause 1s /pieces 99 Go on');
        await button(page, 'Stop').waitFor();
        await field(page).fill('Not yet');
        await field(page).press('Enter');
        expect(await field(page).inputValue()).toBe('Not yet');
        await field(page).press('Escape');
        await says(page, 'Stopped.').waitFor();

        const notes = {
          name: '"><img src=x onerror=alert(1)>.txt',
          mimeType: 'text/plain',
          buffer: Buffer.from('secret plan'),
        };
        const chooser = page.waitForEvent('filechooser');
        await button(page, 'Attach files').click();
        await (await chooser).setFiles(notes);
        await button(page, `Remove ${notes.name}`).waitFor();
        await say(page, '/artifact Read this');
        await button(page, 'Open echo.txt').click();
        await page.getByRole('dialog').getByText('Read this').waitFor();
        await look('chat-file');
        // Only the conversation scrolls, not the page.
        expect(await page.evaluate('document.documentElement.scrollHeight <= window.innerHeight')).toBe(true);
        await page.keyboard.press('Escape');
        await button(page, /^Open .*img src=x onerror/).click();
        await page.getByRole('dialog').getByText('secret plan').waitFor();
        await page.keyboard.press('Escape');

        // The Thread belongs to the operator.
        const threadId = page.url().split('/').at(-1)!;
        const { thread } = (
          await send<{ thread: { userId: string } }>(operatorOf(system, pods[0]), 'GET', `/threads/${threadId}`)
        ).body;
        expect(thread.userId).toBe('operator:on call');

        // Signing out ends the stream, and the page shows the sign-in form.
        allow(/401/);
        await button(page, 'Account: on call').click();
        await page.getByRole('menuitem', { name: 'Sign out' }).click();
        await page.getByLabel('Operator token').waitFor();
      });
    },
    180_000,
  );

  test('keeps several chats: titles, filter, archive, delete', async () => {
    await begin('ada', 'First subject');
    await begin('ada', 'Second subject');
    await begin('grace', 'Of somebody else');
    await browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page }) => {
      await page.goto(await linkOf('ada'));
      const link = (name: string) => page.getByRole('link', { name });
      await link('First subject').waitFor();
      expect(await link('Of somebody else').count()).toBe(0);
      // People copy the address, so it must not have the token.
      expect(page.url()).not.toContain('token');

      await button(page, 'Actions for First subject').click();
      await page.getByRole('menuitem', { name: 'Rename' }).click();
      await page.getByLabel('Title', { exact: true }).fill('Renamed');
      await page.getByRole('dialog').getByRole('button', { name: 'Rename' }).click();
      await link('Renamed').waitFor();

      // The unsent text appears again when the user returns.
      await field(page).fill('Not sent yet');
      await link('Second subject').click();
      await says(page, 'You said: Second subject').waitFor();
      expect(await field(page).inputValue()).toBe('');
      await link('New chat').click();
      await page.getByRole('heading', { name: 'echo' }).waitFor();
      expect(await field(page).inputValue()).toBe('Not sent yet');

      await page.getByLabel('Filter by title').fill('renam');
      await link('Second subject').waitFor({ state: 'detached' });
      await button(page, 'Actions for Renamed').click();
      await page.getByRole('menuitem', { name: 'Archive' }).click();
      await link('Renamed').waitFor({ state: 'detached' });
      await page.getByText('Archived', { exact: true }).click();
      await link('Renamed').click();
      await says(page, 'You said: First subject').waitFor();

      await button(page, 'Actions for Renamed').click();
      await page.getByRole('menuitem', { name: 'Delete' }).click();
      await agree(page, 'Delete');
      await page.getByRole('heading', { name: 'echo' }).waitFor();
    });
  }, 120_000);

  test('shows one whole answer after a reload, a lost pod and a lost worker', async () => {
    await browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page, allow }) => {
      allow(SERVER_IS_DOWN);
      await page.goto(await linkOf('alan'));
      const whole = Array.from({ length: 60 }, (_, i) => i + 1).join(' ');
      await say(page, '/pause 60 /pieces 60 Count');
      await says(page, /\b5\b/).waitFor();
      await page.reload();
      await says(page, /\b15\b/).waitFor();
      const spare = await system.startApi();
      await balancer.add(spare.caller);
      balancer.remove(pods[0].caller);
      await pods[0].process.kill('SIGKILL');
      await says(page, whole).waitFor();
      expect(await answers(page).count()).toBe(1);

      // The worker kills itself after the last word of the answer, and another one continues.
      await say(page, '/crash Where were we?');
      await system.startWorker();
      await says(page, 'You said: Where were we?').waitFor({ timeout: 60_000 });
      await page.getByRole('status').filter({ hasText: 'The answer is complete.' }).waitFor();
      expect(await page.getByText('You said: Where were we?').count()).toBe(1);
    });
  }, 180_000);

  test('shows a decision and a deletion of another tab', async () => {
    const threadId = await begin('linus', '/confirm 1 Ship it?');
    await browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page, allow }) => {
      const link = await linkOf('linus', threadId);
      const other = await page.context().newPage();
      await Promise.all([page.goto(link), other.goto(link)]);
      await button(other, 'Allow send_note').waitFor();
      await button(page, 'Allow send_note').click();
      for (const tab of [page, other]) {
        await says(tab, /You said: Ship it\?/).waitFor();
        expect(await button(tab, 'Allow send_note').count()).toBe(0);
      }
      allow(/404/);
      await button(other, /^Actions for .*Ship it/).click();
      await other.getByRole('menuitem', { name: 'Delete' }).click();
      await agree(other, 'Delete');
      await page.getByText('This chat was deleted, or it does not exist.').waitFor();
    });
  }, 120_000);

  test('runs no script and sends no request to another origin, whatever text the model writes', async () => {
    const threadId = await begin('mallory', 'Begin');
    const path = `/threads/${threadId}/events`;
    // The API rejects null bytes and longer texts.
    const texts = together(HOSTILE.map(({ text }) => text.replaceAll('\0', '').slice(0, 99_000)));
    for (const text of texts) {
      // The answer repeats the text. The blank line makes it a separate block.
      const body = { events: [{ type: 'user_message', text: `\n\n${text}` }] };
      // The service refuses it while the Run before is active.
      const isAccepted = async () => {
        const { status, body: answer } = await send(service, 'POST', path, body);
        if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`);
        return true;
      };
      await eventually(isAccepted, { what: `“${text.slice(0, 40)}” is accepted` });
    }
    await browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page }) => {
      const foreign: string[] = [];
      const { origin } = new URL(service.baseUrl);
      page.on('request', (request) => request.url().startsWith(`${origin}/`) || foreign.push(request.url()));
      page.on('dialog', (dialog) => {
        foreign.push(dialog.message());
        void dialog.dismiss();
      });
      await page.goto(await linkOf('mallory', threadId));
      const isShown = async () => {
        const earlier = button(page, 'Earlier messages');
        if ((await earlier.count()) > 0) await earlier.click();
        return (await answers(page).count()) === texts.length + 1 && (await button(page, 'Stop').count()) === 0;
      };
      await eventually(isShown, { what: 'all answers are complete', timeoutMs: 90_000 });
      const chooser = page.waitForEvent('filechooser');
      await button(page, 'Attach files').click();
      await (await chooser).setFiles(FILE_NAMES.map((name) => ({ name, mimeType: 'text/html', buffer: SCRIPT })));
      await eventually(async () => (await button(page, /^Remove /).count()) === FILE_NAMES.length, {
        what: 'all are attached',
      });
      await say(page, 'Look');
      await eventually(async () => (await button(page, /^Open /).count()) === FILE_NAMES.length, {
        what: 'all are sent',
      });
      for (const open of await button(page, /^Open /).all()) {
        await open.click();
        await page.getByRole('dialog').getByText(SHOWN_FILE).last().waitFor();
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
      expect(foreign).toEqual([]);
      // The icons of buttons are SVG too.
      const forbidden = 'script, iframe, object, embed, svg:not(button *), form, [onerror], [onload]';
      expect(await page.locator(`[data-role] :is(${forbidden})`).count()).toBe(0);
    });
  }, 180_000);

  test('explains a link that is expired or for another agent, and leaves a link', async () => {
    await browser.visit({ screen: 'narrow', baseUrl: service.baseUrl }, async ({ page, allow, look }) => {
      allow(/401/);
      await page.goto(`/chat/${system.agentId}#token=spool_bt_a.b.c`);
      await page.getByRole('heading', { name: 'This link' }).waitFor();
      await look('chat-expired');
      // A new link, pasted into the same tab, changes only the fragment.
      await page.goto(await linkOf('ada'));
      await button(page, 'Account: ada').click();
      await page.getByRole('menuitem', { name: 'Leave this link' }).click();
      await page.getByLabel('Operator token').waitFor();
      const { body } = await send<{ token: string }>(service, 'POST', '/browser-tokens', rightsOf('ada'));
      await page.goto(`/chat/${system.agentId.replace(/.$/, '0')}#token=${body.token}`);
      await page.getByRole('heading', { name: 'This link is for another agent' }).waitFor();
      await page.getByRole('link', { name: 'Open the agent of this link' }).click();
      await page.getByRole('heading', { name: 'echo' }).waitFor();
    });
  }, 60_000);

  test('shares the operator’s session with the console, and asks before it uses a link', async () => {
    await browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page }) => {
      await signIn(page, system, service.baseUrl);
      await page.goto(`/console/agents/${system.agentId}`);
      await page.getByRole('link', { name: 'Chat with this agent' }).click();
      await page.getByRole('heading', { name: 'echo' }).waitFor();

      // A link from somebody else must not open another user's chats unnoticed.
      const link = await linkOf('mallory');
      await page.goto(link);
      await button(page, 'Stay on call').click();
      await button(page, 'Account: on call').waitFor();
      await page.goto(link);
      await button(page, 'Chat as mallory').click();
      await button(page, 'Account: mallory').waitFor();
      await page.reload();
      await button(page, 'Account: mallory').waitFor();
    });
  }, 60_000);
});
