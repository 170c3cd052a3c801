import { SpoolError } from './errors.ts';
import { Files } from './files.ts';
import { Http, type Fetch } from './http.ts';
import { newKey } from './idempotency-key.ts';
import { path } from './path.ts';
import { attach } from './resources.ts';
import { Run } from './run.ts';
import { Thread, type SendOptions } from './thread.ts';
import { TokenSource, type GetToken } from './token-source.ts';
import type { AgentSummary, BrowserToken, BrowserTokenRights, ThreadAnswer, ThreadsPage } from './types.ts';

export interface SpoolOptions {
  /** Such as `https://threads.example.com/api/v1`. */
  baseUrl: string;
  /** The token of a service or a person, on a server. Never in a browser. */
  token?: string;
  /**
   * In a browser: gets a browser token from your server. Called again before the token expires, and after a 401. Throw an error
   * with the `status` 401 or 403 if the user must sign in again: it is final.
   */
  getToken?: GetToken;
  /** Replaces `fetch`, for example to log requests. Browsers send uploads with `onProgress` by XMLHttpRequest instead. */
  fetch?: Fetch;
}

export interface ThreadOptions {
  /** Your id of the user whom the Thread is for. */
  userId: string;
  /** Your own name for the Thread, such as an order number. If the user has a Thread with this name, that Thread is returned. */
  externalRef?: string | undefined;
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
    requirePlatform();
    if (token === '') throw new TypeError('The token is empty.');
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
    list: async ({ agentId, ...query }: ListOptions = {}): Promise<ThreadsPage> => {
      const list = agentId === undefined ? '/threads' : path`/agents/${agentId}/threads`;
      return this.http.json({ method: 'GET', path: list, query: { ...query, extended: 'true' } });
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

  /** Returns the name and the description. */
  async get(): Promise<AgentSummary> {
    const { agent } = await this.http.json<{ agent: AgentSummary }>({ method: 'GET', path: path`/agents/${this.id}` });
    return agent;
  }

  /** Creates a Thread, or returns the one that has the `externalRef`, in one request. */
  async thread(options: ThreadOptions): Promise<Thread> {
    const threadId = await this.create(options, newKey()).then(
      ({ thread }) => thread.id,
      (error: unknown) => {
        const isTaken = error instanceof SpoolError && error.reason === 'reference_taken';
        if (isTaken && error.threadId !== undefined) return error.threadId;
        throw error;
      },
    );
    return new Thread(this.http, this.files, threadId);
  }

  /** Creates a Thread with its first message in one request, and returns the Run that answers it. */
  async send(text: string, { userId, externalRef, ...options }: ThreadOptions & SendOptions): Promise<Run> {
    const { key = newKey(), signal } = options;
    const resources = await attach(this.files, async () => this.id, options, key);
    const input = { type: 'user.message', content: [{ type: 'text', text }] };
    const { thread, run } = await this.create({ userId, externalRef, input, resources }, key, signal);
    return new Run(this.http, thread.id, run!.id);
  }

  private async create(json: object, key: string, signal?: AbortSignal): Promise<ThreadAnswer> {
    const headers = { 'Idempotency-Key': key };
    return this.http.json({ method: 'POST', path: path`/agents/${this.id}/threads`, json, headers, signal });
  }
}

function requirePlatform(): void {
  const { versions } = (globalThis as { process?: { versions?: { node?: string } } }).process ?? {};
  const [major = 0, minor = 0] = (versions?.node ?? '20.3').split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 3)) throw new Error('@spool/client needs Node 20.3 or later.');
  // The newest of the features that are needed: Chrome 116, Firefox 124, Safari 17.4.
  if (!('any' in AbortSignal)) throw new Error('@spool/client needs a browser with AbortSignal.any.');
}
