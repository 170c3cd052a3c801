import type { Page } from 'playwright-core';
import { describeInBrowser, eventually, reportFigure } from '#testing';
import { useBrowser } from '../support/browser.ts';
import { getThread, send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { startSystem, type System } from '../support/system.ts';

const RUNS = 150;
/** How many messages are sent at the same time. */
const AT_ONCE = 8;
const KEYSTROKES = 100;
/** The pause between two keystrokes of a fast typist. */
const TYPING_PAUSE_MS = 60;
/** The bound for a keystroke (p95). A missed bound is reported, and fails no test. */
const BOUND_MS = 50;

const TABLE = '| a | b |\n|---|---|\n| 1 | `two` |';
const CODE = '```ts\nexport const answer: number = 42;\n```';

/** Returns the text of a question. Of 150 questions, 60 call a tool and 30 have a table and code. */
function questionOf(number: number): string {
  const tool = number % 5 < 2 ? '/tool ' : '';
  const block = number % 5 === 0 ? `\n\n${TABLE}\n\n${CODE}` : '';
  return `${tool}Question ${number}.${block}`;
}

/** Tests the page `/chat` on a Thread of 300 messages. */
describeInBrowser('a long chat', () => {
  const browser = useBrowser();
  let system: System;
  let service: Caller;
  let threadId: string;

  beforeAll(async () => {
    const env = { CHAT_PAGE: 'on', BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` };
    system = await startSystem({ env, manifest: { whenBusy: 'enqueue' } });
    const [api] = await Promise.all([system.startApi(), system.startWorker()]);
    service = { ...api.caller, token: system.serviceToken.token };
    threadId = await fill();
  }, 300_000);
  afterAll(() => system?.stop());

  /** Creates a Thread, and waits until each question has an answer. Returns its id. */
  async function fill(): Promise<string> {
    const input = { type: 'user.message', content: [{ type: 'text', text: questionOf(1) }] };
    const path = `/agents/${system.agentId}/threads`;
    const { thread } = (await send<ThreadAnswer>(service, 'POST', path, { userId: 'ada', input })).body;
    let next = 2;
    const askOn = async (): Promise<void> => {
      while (next <= RUNS) await ask(thread.id, questionOf(next++));
    };
    await Promise.all(Array.from({ length: AT_ONCE }, askOn));
    const isIdle = async () => (await getThread(service, thread.id)).body.run?.status === 'completed';
    await eventually(isIdle, { what: 'all Runs have ended', timeoutMs: 120_000 });
    return thread.id;
  }

  /** Sends a message. Sends it again while the Thread has too many waiting messages. */
  async function ask(id: string, text: string): Promise<void> {
    const body = { events: [{ type: 'user_message', text }] };
    const isAccepted = async () => {
      const { status, body: answer } = await send(service, 'POST', `/threads/${id}/events`, body);
      if (status !== 200) throw new Error(`${status} ${JSON.stringify(answer)}`);
      return true;
    };
    await eventually(isAccepted, { what: `“${text.slice(0, 40)}” is accepted`, timeoutMs: 60_000 });
  }

  /** Returns the path of a link for a person without a session. */
  async function linkOf(id = ''): Promise<string> {
    const rights = { userId: 'ada', agentId: system.agentId, verbs: ['read', 'send'] };
    const { body } = await send<{ token: string }>(service, 'POST', '/browser-tokens', rights);
    return `/chat/${system.agentId}${id && `/${id}`}#token=${body.token}`;
  }

  /** Opens the Thread and loads all its messages. */
  async function showAll(page: Page): Promise<void> {
    await page.goto(await linkOf(threadId));
    const isAllShown = async () => {
      const earlier = page.getByRole('button', { name: 'Earlier messages' });
      if ((await earlier.count()) > 0) await earlier.click({ timeout: 1_000 });
      return (await rows(page).count()) >= 2 * RUNS;
    };
    await eventually(isAllShown, { what: 'all messages are shown', timeoutMs: 120_000 });
  }

  const rows = (page: Page) => page.locator('[data-role]');
  const all = Array.from({ length: RUNS }, (_, i) => i + 1);

  test(
    'shows each of 300 messages once',
    () =>
      browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page, look }) => {
        await showAll(page);
        for (const role of ['user', 'agent']) {
          const texts = await page.locator(`[data-role=${role}]`).allInnerTexts();
          const numbers = texts.map((text) => Number(/Question (\d+)\./.exec(text)?.[1]));
          expect(numbers.toSorted((a, b) => a - b)).toEqual(all);
        }
        expect(await page.locator('[data-part=tool]').count()).toBe(60);
        expect(await page.getByRole('button', { name: 'Earlier messages' }).count()).toBe(0);
        await look('chat-long');
      }),
    300_000,
  );

  test(
    'measures the time until a keystroke is painted, in an empty chat and in one of 300 messages',
    () =>
      browser.visit({ screen: 'wide', baseUrl: service.baseUrl }, async ({ page }) => {
        await page.goto(await linkOf());
        await page.getByRole('heading', { name: 'echo' }).waitFor();
        report('empty chat', await typeIn(page));
        await showAll(page);
        report('300 messages, idle', await typeIn(page));
        await ask(threadId, '/pause 20 /pieces 9999 Go on');
        await page.getByText(/\b5 6 7\b/).waitFor();
        report('300 messages, an answer streams', await typeIn(page));
        // If the Run had ended, the figure would be that of an idle page.
        expect((await getThread(service, threadId)).body.run?.status).toBe('running');
      }),
    300_000,
  );
});

/**
 * Types a text. Returns the milliseconds from each `keydown` until its frame is painted. They include the time during which the page was
 * too busy to handle the event.
 */
async function typeIn(page: Page): Promise<number[]> {
  const field = page.getByRole('textbox', { name: 'Message' });
  await field.fill('');
  await field.focus();
  // A task that is posted in a frame's callback runs after the frame is painted.
  await page.evaluate(`(() => {
    window.keystrokes = [];
    const stop = new AbortController();
    window.stopKeystrokes = () => stop.abort();
    addEventListener('keydown', ({ timeStamp: startedAt }) => {
      requestAnimationFrame(() => {
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => window.keystrokes.push(performance.now() - startedAt);
        port2.postMessage(null);
      });
    }, { capture: true, signal: stop.signal });
  })()`);
  const text = 'the quick brown fox '.repeat(KEYSTROKES / 20);
  await page.keyboard.type(text, { delay: TYPING_PAUSE_MS });
  const isPainted = () => page.evaluate<boolean>(`window.keystrokes.length === ${text.length}`);
  await eventually(isPainted, { what: 'all keystrokes are painted' });
  expect(await field.inputValue()).toBe(text);
  await page.evaluate('window.stopKeystrokes()');
  return page.evaluate<number[]>('window.keystrokes');
}

function report(where: string, tookMs: readonly number[]): void {
  const sorted = tookMs.toSorted((a, b) => a - b);
  const quantile = (q: number): number => sorted[Math.ceil(q * sorted.length) - 1]!;
  const isHeld = quantile(0.95) <= BOUND_MS;
  reportFigure(
    `keystroke to painted frame, ${where}: p50 ${quantile(0.5).toFixed(1)} ms · p95 ${quantile(0.95).toFixed(1)} ms ` +
      `(bound ${BOUND_MS} ms: ${isHeld ? 'held' : 'MISSED'})`,
  );
}
