import { SpoolError } from './errors.ts';
import { Files } from './files.ts';
import { Http, type Fetch } from './http.ts';
import { newKey } from './idempotency-key.ts';
import { Thread } from './thread.ts';
import { TokenSource, type GetToken } from './token-source.ts';
import type { BrowserToken, BrowserTokenRights, ThreadAnswer, ThreadsPage } from './types.ts';

export interface SpoolOptions {
  /** Such as `https://threads.example.com/api/v1`. */
  baseUrl: string;
  /** The token of a service or a person, on a server. Never in a browser. */
  token?: string;
  /** In a browser: gets a browser token from your server. Called again before the token expires, and after a 401. */
  getToken?: GetToken;
  /** Replaces `fetch`, for example to log requests. */
  fetch?: Fetch;
}

export interface ThreadOptions {
  /** Your id of the user whom the Thread is for. */
  userId: string;
  /** Your own name for the Thread, such as an order number. If the user has a Thread with this name, that Thread is returned. */
  externalRef?: string;
}

export interface ListOptions {
  /** The only Agent. Default: all that the token may use. */
  agentId?: string;
  userId?: string;
  externalRef?: string;
  status?: string;
  /** Statuses of the newest Run, separated by commas, such as `waiting_input,failed`. */
  runStatus?: string;
  archived?: 'true' | 'false' | 'all';
  limit?: number;
  /** The `nextCursor` of the previous page. */
  cursor?: string;
}

/** The API of a Spool installation. Stores nothing. Creating this object sends no request. */
export class Spool {
  readonly files: Files;
  private readonly http: Http;

  constructor({ baseUrl, token, getToken, fetch = globalThis.fetch.bind(globalThis) }: SpoolOptions) {
    requireNode20();
    if ((token === undefined) === (getToken === undefined)) throw new TypeError('Give either token or getToken.');
    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError('baseUrl must start with http:// or https://.');
    const tokens = new TokenSource(getToken ?? (() => token!));
    this.http = new Http(baseUrl.replace(/\/+$/, ''), tokens, getToken !== undefined, fetch);
    this.files = new Files(this.http);
  }

  agent(id: string): Agent {
    return new Agent(this.http, this.files, id);
  }

  /** Returns a Thread by its id. */
  thread(id: string): Thread {
    return new Thread(this.http, this.files, id);
  }

  readonly threads = {
    /** Returns a page of Threads, the last changed first, each with its newest Run. */
    list: ({ agentId, ...query }: ListOptions = {}): Promise<ThreadsPage> => {
      const path = agentId === undefined ? '/threads' : `/agents/${agentId}/threads`;
      return this.http.json({ method: 'GET', path, query: { ...query, extended: 'true' } });
    },
  };

  readonly browserTokens = {
    /** Creates a browser token for a user. Only with a service token, on your server. */
    create: (rights: BrowserTokenRights): Promise<BrowserToken> =>
      this.http.json({ method: 'POST', path: '/browser-tokens', json: rights }),
  };
}

/** A published Agent. */
export class Agent {
  constructor(
    private readonly http: Http,
    private readonly files: Files,
    readonly id: string,
  ) {}

  /** Creates a Thread, or returns the one that has the `externalRef`, in one request. */
  async thread(options: ThreadOptions): Promise<Thread> {
    const path = `/agents/${this.id}/threads`;
    const headers = { 'Idempotency-Key': newKey() };
    const threadId = await this.http.json<ThreadAnswer>({ method: 'POST', path, json: options, headers }).then(
      ({ thread }) => thread.id,
      (error: unknown) => {
        const isTaken = error instanceof SpoolError && error.reason === 'reference_taken';
        if (isTaken && error.threadId !== undefined) return error.threadId;
        throw error;
      },
    );
    return new Thread(this.http, this.files, threadId);
  }
}

function requireNode20(): void {
  const { versions } = (globalThis as { process?: { versions?: { node?: string } } }).process ?? {};
  if (Number.parseInt(versions?.node ?? '20') < 20) throw new Error('@spool/client needs Node 20 or later.');
}
