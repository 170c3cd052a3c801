import type { Locator, Page } from 'playwright-core';
import type { Caller } from './client.ts';
import type { ApiProcess, System } from './system.ts';

/** The operator as a caller of the admin API, for what a person does not do in the console, and for what it must have done. */
export function operatorOf({ operatorToken }: Pick<System, 'operatorToken'>, { caller }: ApiProcess): Caller {
  return { ...caller, baseUrl: `${new URL(caller.baseUrl).origin}/admin/v1`, token: operatorToken };
}

/** Fills the login page in, as a person does. */
export async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel('Operator token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** What the overview tells of at its top, by its title. */
export const problemOf = (page: Page, title: string): Locator =>
  page.getByRole('region', { name: 'Problems' }).getByRole('group', { name: title });

/** Agrees to what the console asks before it acts. */
export const agree = (page: Page, action: string): Promise<void> =>
  page.getByRole('dialog').getByRole('button', { name: action }).click();

/** What the browser complains of while no server runs. */
export const SERVER_IS_DOWN =
  /net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|CONNECTION_CLOSED|EMPTY_RESPONSE|INCOMPLETE_CHUNKED_ENCODING)/;
