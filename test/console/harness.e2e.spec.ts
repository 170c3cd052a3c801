import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describeInBrowser } from '#testing';
import { expectNoFault, SCREENS, useBrowser, type Screen, type Visit } from '../support/browser.ts';

/** By path: pages that are as good as nothing, but for what is planted in them. */
const PAGES: Record<string, { body?: string; script?: string }> = {
  '/good': { body: '<label>Name <input></label><button>Save</button>', script: 'console.log("fine")' },
  '/writes-an-error': { script: 'console.error("planted")' },
  '/throws': { script: 'throw new Error("planted")' },
  '/rejects': { script: 'Promise.reject(new Error("planted"))' },
  '/inline-script': { body: '<script>document.title = "planted"</script>' },
  '/inline-style': { body: '<p style="color: green">planted</p>' },
  '/not-there': { script: 'fetch("/planted")' },
  '/unreachable': { script: 'fetch("/hang-up").catch(() => undefined)' },
  '/gives-up': {
    script: 'const stop = new AbortController(); fetch("/style", stop).catch(() => undefined); stop.abort()',
  },
  '/too-wide': { body: '<div class="wide">planted</div>' },
  '/scrolls-in-a-box': {
    body: '<section tabindex="0" class="box"><div class="wide"><button class="far">planted</button></div></section>',
  },
  '/cut-off': { body: '<section class="cut"><div class="wide"><button class="far">planted</button></div></section>' },
  '/no-name': { body: '<button class="planted"></button>' },
  '/too-pale': { body: '<p class="pale">planted</p>' },
  '/too-pale-at-night': { body: '<p class="night">planted</p>' },
};

const STYLE = `.wide { width: 2000px } .box { overflow: auto } .cut { overflow: hidden } .far { margin-left: 1500px } .pale { color: #ccc; background: #fff }
  @media (prefers-color-scheme: dark) { body { background: #000; color: #fff } .night { color: #333 } }`;

/** As strict as that of the console. */
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:";

const html = (body: string): string =>
  `<!doctype html><html lang="en"><head><title>T</title><link rel="icon" href="data:,"><link rel="stylesheet" href="/style">
   </head><body><main><h1>Page</h1>${body}</main><script src="script" defer></script></body></html>`;

describeInBrowser('a visit', () => {
  const browser = useBrowser();
  let server: Server;
  let baseUrl: string;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const [, folder = '', file] = request.url!.split('/');
      const page = PAGES[`/${folder}`];
      if (folder === 'hang-up') return void request.socket.destroy();
      if (folder === 'style') return void response.setHeader('content-type', 'text/css').end(STYLE);
      if (!page) return void response.writeHead(404).end();
      if (file) return void response.setHeader('content-type', 'text/javascript').end(page.script);
      response.setHeader('content-security-policy', POLICY).setHeader('content-type', 'text/html');
      response.end(html(page.body ?? ''));
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });

  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const visit = (path: string, screen: Screen, body: (visit: Visit) => Promise<void>) =>
    browser.visit({ screen, baseUrl }, async (visited) => {
      await visited.page.goto(`${path}/`, { waitUntil: 'networkidle' });
      await body(visited);
    });
  const looking = (path: string, screen: Screen) =>
    visit(path, screen, ({ look }) => look(`harness${path.replace('/', '-')}`));

  test.each(SCREENS)(
    'finds nothing on a good page, under a strict policy (%s)',
    async (screen) => {
      await looking('/good', screen);
      await looking('/gives-up', screen);
      await looking('/scrolls-in-a-box', screen);
    },
    60_000,
  );

  test.each([
    ['/writes-an-error', /console: planted/],
    ['/throws', /thrown: Error: planted/],
    ['/rejects', /thrown: Error: planted/],
    ['/inline-script', /Content Security Policy/],
    ['/inline-style', /Content Security Policy/],
    ['/not-there', /404 .*\/planted/],
    ['/unreachable', /ERR_EMPTY_RESPONSE .*\/hang-up/],
  ])('fails by what the browser complains of, unless it is allowed: %s', async (path, complaint) => {
    const nothing = async (): Promise<void> => undefined;
    await expect(visit(path, 'wide', nothing)).rejects.toThrow(complaint);
    await visit(path, 'wide', async ({ allow }) => allow(complaint));
  });

  test.each([
    ['/too-wide', 'wide', /20\d\d px of content/],
    ['/cut-off', 'narrow', /planted/],
    ['/no-name', 'narrow', /button-name/],
    ['/too-pale', 'wide', /color-contrast/],
    ['/too-pale-at-night', 'narrow', /color-contrast/],
  ] as const)('fails by what is seen: %s', async (path, screen, fault) => {
    await expect(looking(path, screen)).rejects.toThrow(fault);
  });

  test('axe looks at the page as it is then', async () => {
    await visit('/good', 'wide', async ({ page }) => {
      await expectNoFault(page);
      await page.evaluate("document.querySelector('button').textContent = ''");
      await expect(expectNoFault(page)).rejects.toThrow(/button-name/);
    });
  });
});
