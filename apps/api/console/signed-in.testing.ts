import type { ApiUnderTest } from '../api-under-test.testing.ts';

export interface Signed {
  cookie: string;
  /** The headers of a browser in which the operator is signed in, on a page of the service. */
  headers: { cookie: string; origin: string };
}

/** Of the service, without a path. */
export const originOf = ({ url }: ApiUnderTest): string => new URL(url).origin;

/** Sends the token as the login page does. */
export function sendToken(api: ApiUnderTest, token: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const all = { 'content-type': 'application/json', origin: originOf(api), ...headers };
  return fetch(`${originOf(api)}/console/session`, { method: 'POST', headers: all, body: JSON.stringify({ token }) });
}

/** Must succeed. */
export async function signIn(api: ApiUnderTest, token: string): Promise<Signed> {
  const response = await sendToken(api, token);
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const [cookie] = response.headers.getSetCookie()[0]!.split(';');
  return { cookie: cookie!, headers: { cookie: cookie!, origin: originOf(api) } };
}
