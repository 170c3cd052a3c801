import type { Cookie, Locator, Page } from 'playwright-core';
import { givePageKey, signIn, useBrowser, type Screen, type Visit } from './browser.ts';
import type { ConsoleWorld } from './console-world.ts';
import { agree } from './operator.ts';

/** A visit of somebody who is signed in. */
export interface ConsoleVisit extends Visit {
  /** A path below /console. Resolves when the page has its heading and all that it reads first. */
  open: (path: string) => Promise<void>;
}

export interface Console {
  /** Everybody has the same session. */
  visit: (screen: Screen, body: (visit: ConsoleVisit) => Promise<void>) => Promise<void>;
  visitSignedOut: (screen: Screen, body: (visit: ConsoleVisit) => Promise<void>) => Promise<void>;
}

/** For the tests of a `describeInBrowser`: visits of the console of this world. */
export function useConsole(world: () => Pick<ConsoleWorld, 'caller' | 'operatorToken'>): Console {
  const browser = useBrowser();
  let session: { cookies: Cookie[]; pageKey: string } | undefined;
  const visitSignedOut: Console['visitSignedOut'] = (screen, body) =>
    browser.visit({ screen, baseUrl: world().caller.baseUrl }, (visit) =>
      body({ ...visit, open: (path) => openPage(visit.page, path) }),
    );
  return {
    visitSignedOut,
    visit: (screen, body) =>
      visitSignedOut(screen, async (visit) => {
        const context = visit.page.context();
        if (session === undefined) {
          const pageKey = await signIn(visit.page, world(), world().caller.baseUrl);
          session = { cookies: await context.cookies(), pageKey };
        } else {
          await context.addCookies(session.cookies);
          await givePageKey(context, session.pageKey);
        }
        await body(visit);
      }),
  };
}

async function openPage(page: Page, path: string): Promise<void> {
  await page.goto(`/console${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByRole('status', { name: 'Loading' }).first().waitFor({ state: 'detached' });
}

export const button = (within: Page | Locator, name: string | RegExp): Locator =>
  within.getByRole('button', { name, ...(typeof name === 'string' ? { exact: true } : {}) });

export const rowOf = (page: Page, table: string, name: string | RegExp): Locator =>
  page.getByRole('table', { name: table, exact: true }).getByRole('row', { name }).first();

/** Presses a button that asks first, and agrees. */
export async function pressAndAgree(page: Page, name: string | RegExp, action: string): Promise<void> {
  await button(page, name).click();
  await agree(page, action);
}

/** Waits until it stands on the page, such as what an action says of its end. */
export const told = (page: Page, text: string | RegExp): Promise<void> => page.getByText(text).first().waitFor();
