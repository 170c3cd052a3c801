import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type * as Undici from 'undici';
import { isPublicAddress, parseAllowedAddresses, type AllowedAddresses } from './private-addresses.ts';
import { noteFailure, SpanKind, traced } from '../telemetry/tracing.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/** A host has a private address that the operator has not allowed. `message` is for operators and the log, never for callers. */
export class AddressRefused extends Error {
  override name = 'AddressRefused';

  constructor(host: string, port: number) {
    super(`${host} (port ${port}) is at a private address, which ALLOWED_PRIVATE_ADDRESSES does not allow.`);
  }
}

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>;

export interface Outbound {
  /**
   * Works like `fetch`, for URLs from manifests. Rejects with a TypeError whose cause is AddressRefused if the host is not
   * allowed. Does not follow redirects: a redirect is an error, or the response with `redirect: 'manual'`. Connecting may
   * take 10 s; only the signal limits the rest.
   */
  fetch: Fetch;
  /** Aborts all open requests. */
  close(): Promise<void>;
}

export interface OutboundOptions {
  /** The setting ALLOWED_PRIVATE_ADDRESSES. */
  allowed?: string | undefined;
  /** Resolves names. Default: `lookup` of `dns`. */
  lookup?: typeof systemLookup;
}

/**
 * Opens the client for URLs from manifests, whose authors must not reach the service's own network. Checks the address of each
 * connection, so a name that later resolves to another address cannot bypass the check. Ignores proxies of the environment,
 * because they would resolve names themselves.
 */
export function openOutbound({ allowed = '', lookup = systemLookup }: OutboundOptions): Outbound {
  const isAllowed = parseAllowedAddresses(allowed);
  let opened: Promise<Client> | null = null;
  const fetch: Fetch = async (input, init = {}) => {
    const { undici, dispatcher } = await (opened ??= openClient(isAllowed, lookup));
    const redirect = init.redirect === 'manual' ? 'manual' : 'error';
    // The classes of Node and of undici have the same shape, but are different types.
    const send = () => undici.fetch(input, { ...init, redirect, dispatcher } as Undici.RequestInit);
    return tracedCall(new URL(input), init.method ?? 'GET', send);
  };
  return { fetch, close: async () => (await opened)?.dispatcher.destroy() };
}

/** Traces a call until the response headers. Records only host and port: the rest may be secret. Sends no trace context. */
function tracedCall(url: URL, method: string, send: () => Promise<Response>): Promise<Response> {
  const { hostname, port, protocol } = url;
  return traced(
    method,
    () => ({
      kind: SpanKind.CLIENT,
      attributes: {
        'http.request.method': method,
        'server.address': hostname,
        'server.port': Number(port) || (protocol === 'https:' ? 443 : 80),
      },
    }),
    async (span) => {
      const response = await send();
      span?.setAttribute('http.response.status_code', response.status);
      if (span && response.status >= 400) noteFailure(span, { code: response.status });
      return response;
    },
  );
}

interface Client {
  undici: typeof Undici;
  dispatcher: Undici.Agent;
}

/** Loads undici on first use, because most processes never need it and loading takes 80 ms of CPU. */
async function openClient(isAllowed: AllowedAddresses, lookup: typeof systemLookup): Promise<Client> {
  const undici = await import('undici');
  const connect = guardedConnector(undici, isAllowed, lookup);
  return { undici, dispatcher: new undici.Agent({ connect, headersTimeout: 0, bodyTimeout: 0 }) };
}

function guardedConnector(
  undici: typeof Undici,
  isAllowed: AllowedAddresses,
  lookup: typeof systemLookup,
): Undici.buildConnector.connector {
  const may = (host: string, port: number) => (address: string) =>
    isPublicAddress(address) || isAllowed({ host, address, port });
  return (options, callback) => {
    const { hostname: host } = options;
    const port = Number(options.port) || (options.protocol === 'https:' ? 443 : 80);
    const mayConnect = may(host, port);
    // An IP address in the URL is not looked up.
    if (isIP(host) !== 0 && !mayConnect(host)) return callback(new AddressRefused(host, port), null);
    const guarded: LookupFunction = (name, { all, ...how }, done) =>
      lookup(name, { ...how, all: true }, (error, found: LookupAddress[]) => {
        if (error) return done(error, '', 0);
        const [first, ...others] = found.filter(({ address }) => mayConnect(address));
        if (first === undefined) return done(new AddressRefused(host, port), '', 0);
        return all ? done(null, [first, ...others]) : done(null, first.address, first.family);
      });
    undici.buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup: guarded })(options, callback);
  };
}
