import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { describeInBrowser, eventually, startChromium } from '#testing';
import { getThread, postEvents, send, type Caller, type ThreadAnswer } from '../support/client.ts';
import { ClientPackage } from '../support/client-package.ts';
import { blocksOf } from '../support/documented-clients.ts';
import { startSystem, type System } from '../support/system.ts';

/** `useThread` of the packed package, in pages of React that have another origin than the API. */
const KB = 1_000;

let installed: ClientPackage;

beforeAll(async () => {
  installed = await ClientPackage.install();
}, 60_000);

afterAll(() => installed.remove());

test('the package has at most 10 KB, and its entry for React at most 4 KB more; it is for clients', async () => {
  const react = await readFile(join(installed.folder, 'node_modules/@spool/client/react.js'), 'utf8');
  expect(react).toMatch(/^"use client";/);
  const sizeOf = async (entries: string[]): Promise<number> => {
    const program = entries.map((entry, i) => `export * as e${i} from '${entry}';`).join('\n');
    return gzipSync(await installed.bundle(program, ['react'])).length / KB;
  };
  const client = await sizeOf(['@spool/client']);
  const withReact = await sizeOf(['@spool/client', '@spool/client/react']);
  process.stderr.write(`@spool/client: ${client.toFixed(1)} KB; with React: ${withReact.toFixed(1)} KB (gzip)\n`);
  expect(client).toBeLessThanOrEqual(10);
  expect(withReact - client).toBeLessThanOrEqual(4);
});

describeInBrowser('useThread', () => {
  let system: System;
  let service: Caller;
  let site: Server;
  let browser: Browser;

  beforeAll(async () => {
    system = await startSystem({ env: { BROWSER_TOKEN_KEYS: `k1:${'a'.repeat(43)}=` } });
    const [{ caller }] = await Promise.all([system.startApi(), system.startWorker()]);
    service = { ...caller, token: system.serviceToken.token };
    await installed.write('chat.jsx', blocksOf('client.md').find(({ file }) => file === 'chat.jsx')!.code);
    const script = await installed.bundle(APPLICATION);
    site = createServer((request, response) => {
      if (request.url === '/application.js') {
        return void response.setHeader('content-type', 'text/javascript').end(script);
      }
      if (request.method === 'GET') return void response.setHeader('content-type', 'text/html').end(PAGE);
      const rights = { userId: 'ada', verbs: ['read', 'send', 'decide', 'upload'] };
      void send(service, 'POST', '/browser-tokens', rights).then(({ body }) => response.end(JSON.stringify(body)));
    });
    await new Promise<void>((listening) => site.listen(0, '127.0.0.1', listening));
    browser = await startChromium();
  }, 90_000);

  afterAll(async () => {
    await browser?.close();
    site?.closeAllConnections();
    site?.close();
    await system?.stop();
  });

  async function newThread(text: string): Promise<string> {
    const input = { type: 'user.message', content: [{ type: 'text', text }] };
    const path = `/agents/${service.agentId}/threads`;
    return (await send<ThreadAnswer>(service, 'POST', path, { userId: 'ada', input })).body.thread.id;
  }

  interface Tab {
    page: Page;
    /** The streams that it has opened. */
    streams: () => number;
  }

  async function open(threadId: string): Promise<Tab> {
    const page = await (await browser.newContext()).newPage();
    let streams = 0;
    page.on('request', (request) => void (streams += Number(request.url().includes('/events/stream'))));
    const { port } = site.address() as AddressInfo;
    await page.goto(
      `http://127.0.0.1:${port}/#${new URLSearchParams({ threadId, baseUrl: service.baseUrl }).toString()}`,
    );
    return { page, streams: () => streams };
  }

  const textOf = (page: Page): Promise<string[]> => page.locator('#one li').allTextContents();

  /** The nth question, in one of the chats of the page. */
  const question = ({ page }: Tab, chat: string, n: number) => page.locator(`${chat} p`, { hasText: `"number":${n}}` });

  async function expectText({ page }: Tab, expected: string[]): Promise<void> {
    await eventually(async () => JSON.stringify(await textOf(page)) === JSON.stringify(expected), {
      what: `the page shows ${expected.join(', ')}`,
    });
  }

  test('two tabs show each decision, live and after a reload, with one stream for all components of a page', async () => {
    const threadId = await newThread('Two notes /confirm 2');
    const [one, two] = await Promise.all([open(threadId), open(threadId)]);
    const asked = ['Two notes /confirm 2', '[send_note waiting][send_note waiting]'];
    await Promise.all([one, two].map((tab) => expectText(tab, asked)));
    expect([one.streams(), two.streams()]).toEqual([1, 1]);
    await question(one, '#one', 1).getByText('Allow').click();
    await question(two, '#two', 1).waitFor({ state: 'detached' });
    await one.page.reload();
    await question(one, '#two', 2).waitFor();
    expect(await question(one, '#two', 1).count()).toBe(0);
    await question(two, '#two', 2).getByText('Reject').click();
    const answer =
      'You said: Two notes\nsend_note (ok): Note 1 was sent.\nsend_note (refused): The call was refused by the person who was asked.';
    const done = ['Two notes /confirm 2', `[send_note completed][send_note failed]${answer}`];
    await Promise.all([one, two].map((tab) => expectText(tab, done)));
    await one.page.getByText('live, completed').first().waitFor();
  }, 60_000);

  test('a page that is left in the middle of an answer changes nothing, and shows all of it later', async () => {
    const threadId = await newThread('Count /pieces 60 /pause 50');
    const tab = await open(threadId);
    await eventually(async () => (await textOf(tab.page))[1]?.includes(' 3 '), { what: 'the answer begins' });
    // The stream stays for a second. Both clicks are made by the page, because one by the browser's driver can take that long.
    await tab.page.evaluate(`(async () => {
      const toggle = [...document.querySelectorAll('button')].find((button) => button.textContent === 'toggle');
      toggle.click();
      while (document.querySelector('#one')) await new Promise(requestAnimationFrame);
      toggle.click();
    })()`);
    await tab.page.locator('#one').waitFor();
    expect(tab.streams()).toBe(1);
    const closed = tab.page.waitForEvent('requestfailed', (request) => request.url().includes('/events/stream'));
    await tab.page.getByText('toggle').click();
    await closed;
    const isDone = async (): Promise<boolean> => (await getThread(service, threadId)).body.run?.status === 'completed';
    await eventually(isDone, { what: 'the Run has completed', timeoutMs: 30_000 });
    await tab.page.getByText('toggle').click();
    const { run } = (await getThread(service, threadId)).body;
    await expectText(tab, ['Count /pieces 60 /pause 50', run!.finalOutput!.text]);
    await tab.page.locator('#one input').fill('And now?');
    await tab.page.locator('#one').getByText('Send').click();
    await tab.page.locator('#two').getByText('You said: And now?').waitFor();
  }, 60_000);

  test('an upload shows its progress, can be cancelled, and a refusal is a typed error', async () => {
    const { page } = await open(await newThread('Hello'));
    const upload = `new Promise((resolve, reject) => {
      const sent = [];
      const content = new Blob(['x'.repeat(3_000_000)]);
      client.files.upload('${service.agentId}', { name: 'x.txt', content }, { onProgress: (progress) => sent.push(progress) })
        .then(({ size }) => resolve([size, sent.length > 0, sent.at(-1)]), reject);
    })`;
    const total = 3_000_000;
    expect(await page.evaluate(upload)).toEqual([total, true, { sentBytes: total, totalBytes: total }]);
    const stopped = `(() => {
      const leaving = new AbortController();
      const content = new Blob(['x'.repeat(3_000_000)]);
      const onProgress = () => leaving.abort(new Error('left'));
      const options = { onProgress, signal: leaving.signal };
      return client.files.upload('${service.agentId}', { name: 'x.txt', content }, options).catch(({ message }) => message);
    })()`;
    expect(await page.evaluate(stopped)).toBe('left');
    const refused = `client.files.upload('01ARZ3NDEKTSV4RRFFQ69G5FAV', { name: 'x.txt', content: 'x' }, { onProgress() {} })
      .catch(({ name, status, requestId }) => [name, status, typeof requestId])`;
    expect(await page.evaluate(refused)).toEqual(['SpoolError', expect.any(Number), 'string']);
  }, 30_000);

  test('a Thread that is gone ends with a typed error', async () => {
    const threadId = await newThread('Hello');
    const tab = await open(threadId);
    await tab.page.getByText('You said: Hello').first().waitFor();
    await postEvents(service, threadId, { type: 'user_interrupt' });
    await send(service, 'DELETE', `/threads/${threadId}`);
    await tab.page.getByText('The Thread was not found.').first().waitFor();
  }, 30_000);
});

const PAGE = `<!doctype html><title>Chat</title><link rel="icon" href="data:,"><div id="root"></div>
<script type="module" src="/application.js"></script>`;

/** Shows the chat of docs/api/client.md twice. */
const APPLICATION = `
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Spool } from '@spool/client';
import { SpoolProvider } from '@spool/client/react';
import { Chat } from './chat.jsx';

const { threadId, baseUrl } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
const client = (globalThis.client = new Spool({ baseUrl, getToken: async () => (await fetch('/token', { method: 'POST' })).json() }));

function Application() {
  const [isShown, setShown] = useState(true);
  const chats = ['one', 'two'].map((id) => h('div', { id, key: id }, h(Chat, { threadId })));
  return h(SpoolProvider, { client }, h('button', { onClick: () => setShown(!isShown) }, 'toggle'), isShown && chats);
}

createRoot(document.getElementById('root')).render(h(StrictMode, null, h(Application)));
`;
