import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chatLink } from './chat-link.ts';

// Real: HTTP, the client.

/** Returns the path of the link, and the reasons that were logged. */
async function linkAfter(status: number, body: object): Promise<[link: string, warned: unknown[]]> {
  const server = createServer((_, response) => response.writeHead(status).end(JSON.stringify(body)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const warned: unknown[] = [];
  const warn = ({ reason }: { reason?: string }): number => warned.push(reason);
  const quickstart = { BASE_URL: `${origin}/api/v1`, SERVICE_TOKEN: 'spool_svc_1', GUIDE_AGENT_ID: 'G' };
  const link = await chatLink(quickstart, { warn }).finally(() => server.close());
  return [link.slice(origin.length), warned];
}

it('links to the guide with a token', async () => {
  expect(await linkAfter(200, { token: 't' })).toEqual(['/chat/G#token=t', []]);
});

it.each([
  [401, 'token_invalid', []],
  [404, 'agent_not_found', []],
  [409, 'agent_not_published', []],
  [409, 'browser_tokens_off', ['browser_tokens_off']],
  [400, 'body_invalid', ['body_invalid']],
  [404, undefined, [undefined]],
])('links to the page after %i %s, and warns of what no operator has caused', async (status, reason, warned) => {
  const error = { code: 'refused', message: 'Refused.', reason };
  expect(await linkAfter(status, { error })).toEqual(['/chat', warned]);
});
