import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { EventSource } from 'eventsource';
import type { Page } from 'playwright-core';
import { BrowserTokens, SignedTokens } from '#access';
import { findFreePort, parseSigningKeys } from '#platform';
import { describeInBrowser, eventually, spawnNode, type SpawnedNode } from '#testing';
import { useBrowser, type Visit } from '../support/browser.ts';
import type { Caller } from '../support/client.ts';
import { blocksOf } from '../support/documented-clients.ts';
import { startSystem, upTo, type System } from '../support/system.ts';

/** The application of docs/api/browsers.md in Chromium. Its pages have another origin than the API, and nothing is between them. */
const KEYS = `k1:${'a'.repeat(43)}=`;
/** Long enough to open a stream with the token. */
const STREAM_SECONDS = 5;
const VERBS = ['read', 'send', 'decide', 'upload'];
/** A PNG of one pixel. */
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
);
const PDF = Buffer.from('%PDF-1.4\n%%EOF\n');

interface Session {
  token: string;
  userId: string;
  baseUrl: string;
  agentId: string;
}

describeInBrowser('the application of the guide for browsers', () => {
  const browser = useBrowser();
  let system: System;
  let service: Caller;
  let folder: string;
  let application: SpawnedNode;
  let origin: string;

  beforeAll(async () => {
    system = await startSystem({ env: { BROWSER_TOKEN_KEYS: KEYS } });
    const [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
    const { agentId } = system;
    service = { ...caller, token: system.serviceToken.token };
    folder = await mkdtemp(join(tmpdir(), 'spool-application-'));
    const files = blocksOf('browsers.md').filter(({ file }) => file !== '');
    await Promise.all(files.map(({ file, code }) => writeFile(join(folder, file), code)));
    const port = await findFreePort();
    const env = { BASE_URL: caller.baseUrl, SERVICE_TOKEN: service.token, AGENT_ID: agentId, PORT: String(port) };
    application = spawnNode(join(folder, 'app.mjs'), [], env);
    await application.waitForLine(/^Open /m, 10_000);
    origin = `http://127.0.0.1:${port}`;
  }, 90_000);

  afterAll(async () => {
    await application?.kill('SIGKILL');
    await system.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const visit = (body: (visit: Visit) => Promise<void>): Promise<void> =>
    browser.visit({ screen: 'wide', baseUrl: origin }, body);

  /** Returns the session that the application's server gives to its pages, with a token that ends after the time. */
  async function sessionFor(seconds: number): Promise<Session> {
    const response = await fetch(`${origin}/spool-token`, { method: 'POST' });
    const session = (await response.json()) as Session;
    const claims = { parentId: system.serviceToken.id, userId: 'ada', agentId: service.agentId, threadId: null };
    const { token } = await new BrowserTokens(new SignedTokens(parseSigningKeys(KEYS))).make(
      { ...claims, verbs: VERBS, origins: [origin] },
      seconds,
    );
    return { ...session, token };
  }

  test(
    'two tabs show one decision on two requests, live and after a reload, and a late decision learns which one counts',
    () =>
      visit(async ({ page, allow }) => {
        allow(/409/);
        await page.goto('/');
        await say(page, 'Two notes /confirm 2');
        const first = page.locator('li', { hasText: '"number":1' });
        await first.waitFor();
        const other = await page.context().newPage();
        await other.goto(page.url());
        await other.locator('li', { hasText: '"number":2' }).waitFor();
        const threadId = new URL(page.url()).hash.slice(1);
        const { token } = await sessionFor(60);
        const live = followWithEventSource({ ...service, token }, threadId);
        const requestIds = await eventually(() => live.requests().length === 2 && live.requests(), {
          what: 'requests',
        });
        await first.getByText('allow').click();

        const shown = ['Two notes /confirm 2', 'allow_once', 'send_note {"note":"Two notes","number":2} allowreject'];
        await Promise.all([expectLines(page, shown), expectLines(other, shown)]);
        await eventually(() => live.decisions().length === 1, { what: 'the decision, with eventsource' });
        await other.reload();
        await expectLines(other, shown);
        const later = followWithEventSource({ ...service, token }, threadId);
        await eventually(() => later.decisions().length === 1, { what: 'the decision, with a new eventsource' });
        expect(later.decisions()).toEqual(live.decisions());
        expect(live.decisions()).toEqual([{ requestId: requestIds[0], decision: 'allow_once' }]);

        const events = [{ type: 'permission_decision', requestId: requestIds[0], decision: 'reject_once' }];
        const late = await other.evaluate<object>(`import('/spool.mjs').then(({ post }) =>
          post('/threads/${threadId}/events', '${JSON.stringify({ events })}').catch(({ reason, decision }) => [reason, decision]))`);
        expect(late).toEqual(['request_decided', 'allow_once']);
        await other.getByText('reject').click();
        for (const tab of [page, other]) await tab.locator('li', { hasText: 'You said: Two notes' }).waitFor();
        live.close();
        later.close();
      }),
    upTo(60_000),
  );

  test(
    'uploads, shows an image and downloads a PDF by link',
    () =>
      visit(async ({ page }) => {
        await page.goto('/');
        await say(page, 'A picture', { name: 'dot.png', mimeType: 'image/png', buffer: PNG });
        const isShown = `document.querySelector('img[alt="dot.png"]')?.naturalWidth === 1`;
        await eventually(() => page.evaluate<boolean>(isShown), { what: 'the image is shown' });
        await page.getByText('You said: A picture').waitFor();
        await say(page, 'A report', { name: 'report.pdf', mimeType: 'application/pdf', buffer: PDF });
        const [download] = await Promise.all([page.waitForEvent('download'), page.getByText('report.pdf').click()]);
        expect(download.suggestedFilename()).toBe('report.pdf');
        expect(await readFile(await download.path())).toEqual(PDF);
      }),
    upTo(60_000),
  );

  test(
    'renews an expired token, also in the middle of a stream, and shows everything once',
    () =>
      visit(async ({ page, allow }) => {
        allow(/401/);
        const lifetimes = [-60, STREAM_SECONDS];
        await page.route('**/spool-token', async (route) => {
          const seconds = lifetimes.shift();
          await (seconds === undefined ? route.continue() : route.fulfill({ json: await sessionFor(seconds) }));
        });
        const streams: number[] = [];
        page.on('response', (response) => {
          if (response.url().includes('/events/stream')) streams.push(response.status());
        });
        await page.goto('/');
        await say(page, 'One');
        await eventually(() => streams.length === 3, { what: 'the stream is open again', timeoutMs: 20_000 });
        expect(streams).toEqual([200, 401, 200]);
        await say(page, 'Two');
        await expectLines(page, ['One', 'You said: One', 'Two', 'You said: Two']);
      }),
    upTo(60_000),
  );

  test('a page of another origin, without a token or with that of a service, reads nothing', () =>
    visit(async ({ page, allow }) => {
      [/40[134]/, /CORS/, /ERR_FAILED/].forEach(allow);
      const { token, baseUrl, agentId } = await sessionFor(60);
      await page.goto(origin.replace('127.0.0.1', 'localhost'));
      const read = (authorization: string): Promise<unknown> =>
        page.evaluate(`fetch('${baseUrl}/agents/${agentId}/threads', { headers: ${authorization} }).then(
          async (response) => [response.status, response.headers.get('spool-error-reason'), await response.json()],
          () => 'unreadable')`);
      const error = (code: string) => ({ error: { code, message: expect.any(String) as string } });
      const forbidden = [403, 'origin_forbidden', error('forbidden')];
      expect(await read(`{ authorization: 'Bearer ${token}' }`)).toEqual(forbidden);
      expect(await read('{}')).toEqual([401, 'token_invalid', error('unauthenticated')]);
      expect(await read(`{ authorization: 'Bearer ${service.token}' }`)).toBe('unreadable');
    }));
});

interface File {
  name: string;
  mimeType: string;
  buffer: Buffer;
}

/** Writes a message and sends it. */
async function say(page: Page, text: string, file?: File): Promise<void> {
  await page.getByLabel('Message').fill(text);
  if (file) await page.getByLabel('File').setInputFiles(file);
  await page.getByText('Send').click();
}

async function expectLines(page: Page, expected: string[]): Promise<void> {
  await eventually(async () => isDeepStrictEqual(await page.locator('li').allTextContents(), expected), {
    what: `the page shows ${expected.join(', ')}`,
  });
}

/** Follows a Thread from its first entry with the package `eventsource`. */
function followWithEventSource({ baseUrl, token }: Caller, threadId: string) {
  const entries: ExtendedEntry[] = [];
  const url = `${baseUrl}/threads/${threadId}/events/stream?extended=true&after=${'0'.repeat(26)}`;
  const source = new EventSource(url, {
    fetch: (address, init) =>
      fetch(address, { ...init, headers: { ...init.headers, Authorization: `Bearer ${token}` } }),
  });
  source.addEventListener('thread.event', ({ data }) => entries.push(JSON.parse(String(data)) as ExtendedEntry));
  return {
    requests: () => entries.filter(({ type }) => type === 'tool.confirmation.required').map(({ content }) => content),
    decisions: () =>
      entries
        .filter(({ content }) => content === 'decided')
        .map(({ requestId, decision }) => ({ requestId, decision })),
    close: () => source.close(),
  };
}

interface ExtendedEntry {
  type: string;
  content: string;
  requestId?: string;
  decision?: string;
}
