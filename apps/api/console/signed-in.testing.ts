import type { ApiUnderTest } from '../api-under-test.testing.ts';

export interface Signed {
  cookie: string;
  /** The key that the page holds. Browsers never send it automatically. */
  pageKey: string;
  /** Headers of a request that reads: the cookie and the key. */
  reads: { cookie: string; 'spool-page-key': string };
  /** Headers of a request that changes something. */
  headers: { cookie: string; 'spool-page-key': string; origin: string };
}

/** Returns the origin of the service. */
export const originOf = ({ url }: ApiUnderTest): string => new URL(url).origin;

/** Sends the token as the login page does. */
export function sendToken(api: ApiUnderTest, token: unknown, headers: Record<string, string> = {}): Promise<Response> {
  const page = { 'content-type': 'application/json', origin: originOf(api), 'spool-page-key': '' };
  return fetch(`${originOf(api)}/console/session`, {
    method: 'POST',
    headers: { ...page, ...headers },
    body: JSON.stringify({ token }),
  });
}

/** Signs in, with `headers` in the request. Throws if it fails. */
export async function signIn(api: ApiUnderTest, token: string, headers: Record<string, string> = {}): Promise<Signed> {
  return signedIn(api, await sendToken(api, token, headers));
}

/** Returns the cookie and the key of a successful sign-in. Throws if the response is an error. */
export async function signedIn(api: ApiUnderTest, response: Response): Promise<Signed> {
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
  const { pageKey } = (await response.json()) as { pageKey: string };
  const cookie = response.headers.getSetCookie()[0]!.split(';')[0]!;
  const reads = { cookie, 'spool-page-key': pageKey };
  return { cookie, pageKey, reads, headers: { ...reads, origin: originOf(api) } };
}
