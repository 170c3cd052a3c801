import type { AdminOperation, Operation } from '#contract';
import { BODY_BYTES, type Act, type Got } from './largest-world.ts';

type Body = Buffer | string;

/** An id or a value of a query, as long as Node takes headers. */
const LONG = 'x'.repeat(14_000);
const MANY_PARAMETERS = Array.from({ length: 3_500 }, (_, i) => `a${i}`).join('&');

/** Bodies that no operation accepts: deep, of many values, of many names, with one text. */
const REFUSED_BODIES = [
  '['.repeat(BODY_BYTES),
  `[${'0,'.repeat(BODY_BYTES / 2 - 2)}0]`,
  `{${Array.from({ length: 49_000 }, (_, i) => `"${String(i).padStart(150, 'n')}":0`).join(',')}}`,
  `[${'{"events":"text","name":[{}]},'.repeat(12_000)}0]`,
  `{"name":"${'\\ud800'.repeat(BODY_BYTES / 6 - 10)}"}`,
].map((text) => Buffer.from(text));

/** Requests with long ids and values, many parameters, and bodies that no operation accepts. */
export function refusedRequests(
  { method, path, body }: Pick<Operation | AdminOperation, 'method' | 'path' | 'body'>,
  send: (method: string, path: string, body?: Body) => Promise<Got>,
): Act[] {
  const long = path.replaceAll(/\{\w+\}/g, LONG.slice(0, LONG.length / (path.split('{').length || 1)));
  const plain = path.replaceAll(/\{\w+\}/g, '0'.repeat(26));
  const heads = [
    long,
    `${plain}?limit=${LONG}`,
    `${plain}?cursor=${LONG}&userId=${LONG.slice(0, 900)}`,
    `${plain}?${MANY_PARAMETERS}`,
  ];
  const acts = heads.map(
    (head): Act =>
      () =>
        send(method, head),
  );
  if (method === 'GET' || body === 'upload') return acts;
  return [
    ...acts,
    ...REFUSED_BODIES.map(
      (text): Act =>
        () =>
          send(method, plain, text),
    ),
  ];
}
