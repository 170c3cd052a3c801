import { lookup as systemLookup, type LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type * as Undici from 'undici';
import { isPublicAddress, parseAllowedAddresses, type AllowedAddresses } from './private-addresses.ts';
import { noteFailure, SpanKind, traced } from '../telemetry/tracing.ts';

const CONNECT_TIMEOUT_MS = 10_000;

/**
 * A host is at an address that is not of the public internet, and the operator has not allowed it. `message` is for
 * operators and the log, never for callers.
 */
export class AddressRefused extends Error {
  override name = 'AddressRefused';

  constructor(host: string, port: number) {
    super(`${host} (port ${port}) is at a private address, which ALLOWED_PRIVATE_ADDRESSES does not allow.`);
  }
}

export type Fetch = (input: string | URL, init?: RequestInit) => Promise<Response>;

export interface Outbound {
  /**
   * What `fetch` is, for addresses that come from manifests. Rejects with a TypeError whose cause is AddressRefused where
   * the host may not be contacted, and as `fetch` does. A redirect is not followed: it is an error, or with
   * `redirect: 'manual'` the answer. Connecting may take 10 s; the rest takes as long as the signal lets it.
   */
  fetch: Fetch;
  /** Cuts what is open. */
  close(): Promise<void>;
}

export interface OutboundOptions {
  /** The setting ALLOWED_PRIVATE_ADDRESSES. */
  allowed?: string | undefined;
  /** How names are resolved, of `dns`. */
  lookup?: typeof systemLookup;
}

/**
 * Opens what the service calls out with on behalf of manifests: whoever may publish one must not reach the service's own
 * network with it. The address is judged where it is connected to, so a name that resolves to something else the next time
 * does not help. Proxies of the environment are not used: they would do the resolving.
 */
export function openOutbound({ allowed = '', lookup = systemLookup }: OutboundOptions): Outbound {
  const isAllowed = parseAllowedAddresses(allowed);
  let opened: Promise<Client> | null = null;
  const fetch: Fetch = async (input, init = {}) => {
    const { undici, dispatcher } = await (opened ??= openClient(isAllowed, lookup));
    const redirect = init.redirect === 'manual' ? 'manual' : 'error';
    // Node's own classes and those of undici are the same by their shape, and not by their names.
    const send = () => undici.fetch(input, { ...init, redirect, dispatcher } as Undici.RequestInit);
    return tracedCall(new URL(input), init.method ?? 'GET', send);
  };
  return { fetch, close: async () => (await opened)?.dispatcher.destroy() };
}

/** Until its head has come. Of the address only where it is: the rest may be a secret. No context goes out with it. */
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

/** When it is first needed: most processes never call out, and loading it takes 80 ms of CPU. */
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
    // An address that stands in the URL is not looked up.
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
