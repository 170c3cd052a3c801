import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { eventually, startChromium } from '#testing';
import type { System } from './system.ts';

/** A desk's and a phone's, CSS pixels. */
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 390, height: 844 } } as const;

export type Screen = keyof typeof SIZES;

/** What every page is shown on, as in `test.each(SCREENS)`. */
export const SCREENS = Object.keys(SIZES) as Screen[];

const SCHEMES = ['light', 'dark'] as const;

/** Somebody looks at pages, in a browser that has seen nothing before. */
export interface Visit {
  page: Page;
  /** Of what the browser complains of, this does not fail the test. */
  allow: (complaint: RegExp) => void;
  /**
   * Holds the page as it is against what holds of every page, light and dark, and keeps pictures where they are wanted. A page that is not
   * ours may have faults that axe finds.
   */
  look: (name: string, of?: { isOurs: boolean }) => Promise<void>;
  /** To a screen of this size. */
  resize: (to: Screen) => Promise<void>;
}

export interface VisitOptions {
  screen: Screen;
  /** Where paths such as `/console/runs` begin; that of a `Caller` will do. */
  baseUrl: string;
}

export interface Visits {
  /** Throws what the body throws, and else when the browser complained of something. */
  visit(options: VisitOptions, body: (visit: Visit) => Promise<void>): Promise<void>;
}

/** For the tests of a `describeInBrowser`: one browser for all of them, and nothing of one visit is left for the next. */
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

/** Gives the browser a session; returns the key of its pages. The login page has tests of its own. */
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

/** Gives every page of the context the key, on every port, unless it has one. */
export const givePageKey = (context: BrowserContext, pageKey: string): Promise<unknown> =>
  context.addInitScript(
    `if (location.protocol !== 'about:') localStorage.getItem('spool-page-key') ?? localStorage.setItem('spool-page-key', '${pageKey}')`,
  );

/** Errors that scripts threw or wrote, what the page's policy kept out, and requests that got no answer or a bad one. */
function complaintsOf(context: BrowserContext): string[] {
  const complaints: string[] = [];
  context.on('weberror', (thrown) => complaints.push(`thrown: ${thrown.error().stack ?? String(thrown.error())}`));
  context.on('console', (message) => {
    const { url } = message.location();
    const isPolicy = /content.security.policy/i.test(message.text());
    // An answer of 400 and more is written here too, by the browser.
    if (message.type() === 'error' || isPolicy) complaints.push(`console: ${message.text()} (${url})`);
  });
  context.on('requestfailed', (request) => {
    const why = request.failure()?.errorText ?? 'no reason';
    // What a page gives up itself, because it is left or asks for something newer.
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
        what: 'all is in reach, drawn as wide as the screen',
        timeoutMs: 5_000,
      });
    }
    // Another scheme changes nothing but colours.
    if (isOurs) await expectNoFault(page, i === 0 ? undefined : COLOR_RULES);
  }
}

/** Whether a page that has schemes has this one; what moves to it is there at once. */
const hasColors = (scheme: string): string => `(() => {
  const finite = document.getAnimations().filter(({ effect }) => effect.getComputedTiming().endTime < Infinity);
  for (const animation of finite) animation.finish();
  const { mantineColorScheme } = document.documentElement.dataset;
  return [undefined, '${scheme}'].includes(mantineColorScheme) && finite.length === 0;
})()`;

/** Into the folder CONSOLE_SCREENSHOTS; without it none is taken, for it takes longer than all else. */
async function screenshot(page: Page, name: string): Promise<void> {
  const folder = process.env['CONSOLE_SCREENSHOTS'];
  if (folder) await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}

/** What is too wide scrolls in a box of its own. */
async function isInReach(page: Page): Promise<true> {
  const widths = await page.evaluate<[number, number]>(
    '[document.documentElement.scrollWidth, document.documentElement.clientWidth]',
  );
  expect(`${widths[0]} px of content`).toBe(`${Math.min(...widths)} px of content`);
  expect(await page.evaluate<string[]>(OUT_OF_REACH)).toEqual([]);
  return true;
}

/** What can be pressed or filled in and lies beyond the right edge, where no box scrolls to it. */
const OUT_OF_REACH = `[...document.querySelectorAll('a, button, input, select, [role=tab]')].filter((element) => {
  const { right, width } = element.getBoundingClientRect();
  if (width === 0 || right <= document.documentElement.clientWidth + 1) return false;
  for (let box = element.parentElement; box; box = box.parentElement)
    if (/auto|scroll/.test(getComputedStyle(box).overflowX)) return false;
  return true;
}).map((element) => element.getAttribute('aria-label') ?? element.textContent)`;

let axeSource: Promise<string> | undefined;

/** Those of axe that are about colours. */
const COLOR_RULES = ['color-contrast', 'link-in-text-block'];

/** Expects that axe-core, with all its rules or the given ones, finds nothing on the page. */
export async function expectNoFault(page: Page, rules?: string[]): Promise<void> {
  // Evaluated by the debugger: the page's own policy lets no script in.
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
