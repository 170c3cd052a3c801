import { accessSync, constants } from 'node:fs';
import { z } from 'zod';
import { isDatabaseUrl } from '../postgres/database-address.ts';
import { parseAllowedAddresses } from '../outbound/private-addresses.ts';
import { isRedisUrl, parseRedisAddress, REDIS_PROTOCOLS } from '../redis/redis-address.ts';

export const MEBIBYTE = 1024 * 1024;

const WHOLE = 'must be a whole number';
const wholeNumber = z.coerce.number({ error: WHOLE }).int(WHOLE);
export const atLeast = (min: number) => wholeNumber.min(min, `must be at least ${min}`);
export const between = (min: number, max: number) => atLeast(min).max(max, `must be at most ${max}`);
/** A port to listen on. */
export const port = between(0, 65_535);
export const percentage = between(1, 100);

const address = (...protocols: string[]) =>
  z.string().refine((text) => protocols.some((protocol) => text.startsWith(`${protocol}://`)), {
    message: `must start with ${protocols.map((protocol) => `${protocol}://`).join(' or ')}`,
    abort: true,
  });
const NOT_A_URL = 'is not a URL; special characters in a user name or password must be percent-encoded';
const url = (...protocols: string[]) =>
  address(...protocols).refine((text) => URL.canParse(text), { message: NOT_A_URL, abort: true });

const POSTGRES = ['postgres', 'postgresql'];
export const httpUrl = url('http', 'https');
export const databaseUrl = address(...POSTGRES).refine(isDatabaseUrl, NOT_A_URL);
export const redisUrl = address(...REDIS_PROTOCOLS).superRefine(refuseWrongServer);
export const queueUrl = address(...POSTGRES, ...REDIS_PROTOCOLS).superRefine(refuseWrongServer);

/** Checks the address of a Redis, or of a PostgreSQL if the setting allows one. */
function refuseWrongServer(text: string, context: z.RefinementCtx): void {
  if (!isRedisUrl(text)) return void (isDatabaseUrl(text) || context.addIssue({ code: 'custom', message: NOT_A_URL }));
  try {
    const { cacert, cert, key } = parseRedisAddress(text).tls ?? {};
    for (const file of [cacert, cert, key]) if (file !== undefined) accessSync(file, constants.R_OK);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as Error).message });
  }
}

const WRONG_BLOB_URL =
  'must be file:///folder or s3://bucket/prefix; its only parameters are endpoint=http(s)://… and region=…';
export const blobUrl = url('file', 's3').refine(isBlobUrl, WRONG_BLOB_URL);

/** Rejects a name or password in the URL: S3 credentials come from the environment, as for all AWS programs. */
function isBlobUrl(text: string): boolean {
  const { protocol, host, hostname, username, password, hash, searchParams } = new URL(text);
  if (protocol === 'file:') return host === '';
  const { endpoint, region, ...others } = Object.fromEntries(searchParams);
  return (
    hostname !== '' &&
    host === hostname &&
    username + password + hash === '' &&
    region !== '' &&
    Object.keys(others).length === 0 &&
    (endpoint === undefined || (URL.canParse(endpoint) && /^https?:$/.test(new URL(endpoint).protocol)))
  );
}

/** Host names, addresses and CIDRs, separated by commas. */
export const allowedAddresses = z.string().superRefine((list, context) => {
  try {
    parseAllowedAddresses(list);
  } catch (error) {
    context.addIssue({ code: 'custom', message: (error as RangeError).message });
  }
});
