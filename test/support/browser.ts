import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { eventually, startChromium } from '#testing';
import type { System } from './system.ts';

/** The screen sizes of a desktop and a phone. CSS pixels. */
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } } as const;

export type Screen = keyof typeof SIZES;

/** The screens on which pages are tested, as in `test.each(SCREENS)`. */
export const SCREENS = Object.keys(SIZES) as Screen[];

const SCHEMES = ['light', 'dark'] as const;

/** A visit to pages in a new browser context. */
export interface Visit {
  page: Page;
  /** Ignores complaints of the browser that match. Others fail the test. */
  allow: (complaint: RegExp) => void;
  /**
   * Checks the page against the rules for every page, in light and dark. Saves screenshots if CONSOLE_SCREENSHOTS is set. Does not run
   * axe on a page that is not ours.
   */
  look: (name: string, of?: { isOurs: boolean }) => Promise<void>;
  /** Changes the size of the screen. */
  resize: (to: Screen) => Promise<void>;
}

export interface VisitOptions {
  screen: Screen;
  /** The origin for paths such as `/console/runs`. The `baseUrl` of a `Caller` works too. */
  baseUrl: string;
}

export interface Visits {
  /** Runs the body. Throws its error, or throws if the browser complained. */
  visit(options: VisitOptions, body: (visit: Visit) => Promise<void>): Promise<void>;
}

/** Starts one browser for the tests of a `describeInBrowser`. Each visit has its own context, so visits share no state. */
export function useBrowser(): Visits {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  }, 60_000);
  afterAll(() => browser.close());
  return {
    visit: async ({ screen, baseUrl }, body) => {
      const context = await browser.newContext({ viewport: SIZES[screen], baseURL: new URL('/', baseUrl).href });
      try {
        const complaints = complaintsOf(context);
        const allowed: RegExp[] = [];
        const page = await context.newPage();
        let seenOn = screen;
        await body({
          page,
          allow: (pattern) => void allowed.push(pattern),
          look: (name, of) => look(page, `${name}-${seenOn}`, of),
          resize: async (to) => {
            seenOn = to;
            await page.setViewportSize(SIZES[to]);
          },
        }).catch(async (error: unknown) => {
          await screenshot(page, `failed-${expect.getState().currentTestName!.replaceAll(/\W+/g, '-')}`);
          throw error;
        });
        expect(complaints.filter((complaint) => !allowed.some((pattern) => pattern.test(complaint)))).toEqual([]);
      } finally {
        await context.close();
      }
    },
  };
}

/** Gives the browser a session without the login page, which has its own tests. Returns the page key. */
export async function signIn(
  page: Page,
  { operatorToken }: Pick<System, 'operatorToken'>,
  baseUrl: string,
): Promise<string> {
  const { origin } = new URL(baseUrl);
  const data = { token: operatorToken };
  const headers = { origin, 'spool-page-key': '' };
  const answer = await page.context().request.post(`${origin}/console/session`, { data, headers });
  expect(answer.status()).toBe(200);
  const { pageKey } = (await answer.json()) as { pageKey: string };
  await givePageKey(page.context(), pageKey);
  return pageKey;
}

/** Sets the page key on every page of the context and every port, unless the page has one. */
export const givePageKey = (context: BrowserContext, pageKey: string): Promise<unknown> =>
  context.addInitScript(
    `if (location.protocol !== 'about:') localStorage.getItem('spool-page-key') ?? localStorage.setItem('spool-page-key', '${pageKey}')`,
  );

/** Collects errors of scripts, violations of the page's policy, and requests that failed. */
function complaintsOf(context: BrowserContext): string[] {
  const complaints: string[] = [];
  context.on('weberror', (thrown) => complaints.push(`thrown: ${thrown.error().stack ?? String(thrown.error())}`));
  context.on('console', (message) => {
    const { url } = message.location();
    const isPolicy = /content.security.policy/i.test(message.text());
    // The browser also logs each response with a status of 400 or more here.
    if (message.type() === 'error' || isPolicy) complaints.push(`console: ${message.text()} (${url})`);
  });
  context.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? 'no reason';
    // The page aborts requests itself when it is left, or when it sends a newer request.
    if (why !== 'net::ERR_ABORTED') complaints.push(`request: ${why} (${request.method()} ${request.url()})`);
  });
  return complaints;
}

async function look(page: Page, name: string, { isOurs } = { isOurs: true }): Promise<void> {
  for (const [i, colorScheme] of SCHEMES.entries()) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await eventually(() => page.evaluate<boolean>(hasColors(colorScheme)), { what: `the page is ${colorScheme}` });
    await screenshot(page, `${name}-${colorScheme}`);
    if (i === 0) {
      await eventually(() => isInReach(page), {
        what: 'no control is out of reach, and the page is not wider than the screen',
        timeoutMs: 5_000,
      });
    }
    // A colour scheme changes only colours.
    if (isOurs) await expectNoFault(page, i === 0 ? undefined : COLOR_RULES);
  }
}

/** Whether the page has this colour scheme, or has no schemes. Finishes running animations. */
const hasColors = (scheme: string): string => `(() => {
  const finite = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
  for (const animation of finite) animation.finish();
  const { mantineColorScheme } = document.documentElement.dataset;
  return [undefined, '${scheme}'].includes(mantineColorScheme) && finite.length === 0;
})()`;

/** Saves a screenshot in the folder CONSOLE_SCREENSHOTS. Without this setting, takes none, because screenshots are slow. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env['CONSOLE_SCREENSHOTS'];
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** Expects that wide content scrolls in its own box, and that every control can be reached. */
async function isInReach(page: Page): Promise<true> {
  const widths = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  );
  expect(`${widths[0]} px of content`).toBe(`${Math.min(...widths)} px of content`);
  expect(await page.evaluate<string[]>(OUT_OF_REACH)).toEqual([]);
  return true;
}

/** Finds controls beyond the right edge that no box can scroll into view. */
const OUT_OF_REACH = `[...document.querySelectorAll('a, button, input, select, [role=tab]')].filter((element) => {
  const { right, width } = element.getBoundingClientRect();
  if (width === 0 || right <= document.documentElement.clientWidth + 1) return false;
  for (let box = element.parentElement; box; box = box.parentElement)
    if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return false;
  return true;
}).map((element) => element.getAttribute('aria-label') ?? element.textContent)`;

let axeSource: Promise<string> | undefined;

/** The rules of axe about colours. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** Expects that axe-core, with all its rules or the given ones, finds nothing on the page. */
export async function expectNoFault(page: Page, rules?: string[]): Promise<void> {
  // Evaluated through the debugger, because the page's policy blocks added scripts.
  if (!(await page.evaluate<boolean>(`'axe' in window`))) {
    axeSource ??= readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
    await page.evaluate(await axeSource);
  }
  const options = { resultTypes: ['violations'], ...(rules && { runOnly: { type: 'rule', values: rules } }) };
  const { violations } = await page.evaluate<AxeResults>(`axe.run(document, ${JSON.stringify(options)})`);
  expect(
    violations.map(({ id, help, nodes }) => ({
      id,
      help,
      where: nodes.map(({ target, any }) => [target, any[0]?.message]),
    })),
  ).toEqual([]);
}
