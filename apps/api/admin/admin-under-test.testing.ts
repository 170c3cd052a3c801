import {
  adminOperations,
  type AdminAnswer,
  type AdminCall,
  type AdminOperation,
  type AdminOperations,
} from '#contract';
import type { AdminErrorCode, AdminOperationName, AuditEntry } from '#contract';
import type { Config } from '#platform';
import { eventually } from '#testing';
import { ApiUnderTest, type Start } from '../api-under-test.testing.ts';
import { AdminAnswerCheck } from './admin-answer-check.testing.ts';

export type Given<N extends AdminOperationName> = AdminCall<AdminOperations[N]>;
export type Answer<N extends AdminOperationName> = AdminAnswer<AdminOperations[N]>;

/** A request that is sent unchanged, even if it is invalid. */
export interface Sent {
  params?: Record<string, unknown>;
  query?: Record<string, unknown>;
  body?: unknown;
  token?: string | null;
}

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  json: unknown;
}

const ERROR_LINE = /^\{"error":/;

/** The admin API over real HTTP, on a separate database. Checks every answer against the contract. */
export class AdminUnderTest {
  private constructor(
    readonly api: ApiUnderTest,
    readonly url: string,
    readonly tokenId: string,
    readonly token: string,
    private readonly check: AdminAnswerCheck,
  ) {}

  static async start(settings: Partial<Config> = {}, start: Omit<Start, 'settings'> = {}): Promise<AdminUnderTest> {
    const api = await ApiUnderTest.start({ ...start, settings });
    const url = `${new URL(api.url).origin}/admin/v1`;
    const { id, token } = await api.access.mintToken({ kind: 'operator', name: 'Grace' });
    const document = (await (await fetch(`${url}/openapi.json`)).json()) as never;
    return new AdminUnderTest(api, url, id, token, new AdminAnswerCheck(document));
  }

  get pool() {
    return this.api.pool;
  }

  stop(): Promise<void> {
    return this.api.stop();
  }

  /** Calls an operation and returns its answer. Throws if it is refused. */
  async do<N extends AdminOperationName>(name: N, given: Given<N> & { token?: string } = {}): Promise<Answer<N>> {
    const { status, json, text } = await this.send(name, given);
    if (status >= 400) throw new Error(`${name}: ${status} ${text}`);
    return json as Answer<N>;
  }

  /** Returns all lines of an answer that ends. */
  async lines<N extends AdminOperationName>(name: N, given: Given<N> = {}): Promise<Answer<N>[]> {
    return (await this.do(name, given)) as unknown as Answer<N>[];
  }

  /** Returns the code and the message of a refusal. Throws if the call succeeds. */
  async refused(name: AdminOperationName, sent: Sent): Promise<[AdminErrorCode, string]> {
    const { status, json, text } = await this.send(name, sent);
    if (status < 400) throw new Error(`${name} was not refused: ${text}`);
    const { code, message } = (json as { error: { code: AdminErrorCode; message: string } }).error;
    return [code, message];
  }

  async send(name: AdminOperationName, sent: Sent): Promise<Answered> {
    const response = await fetch(...this.request(name, sent));
    const { status, headers } = response;
    const text = await response.text();
    const isLines = headers.get('content-type') === 'application/x-ndjson';
    const isBytes = headers.get('content-type') === 'application/octet-stream';
    if (isBytes) return { status, headers, text, json: null };
    const json: unknown = isLines ? parseLines(text) : JSON.parse(text);
    if (status >= 400) this.check.checkError(name, status, json);
    else {
      for (const value of isLines ? (json as object[]) : [json]) {
        const isErrorLine = isLines && ERROR_LINE.test(JSON.stringify(value));
        if (!isErrorLine) this.check.checkAnswer(name, status, value);
      }
    }
    return { status, headers, text, json };
  }

  /** Returns the arguments of `fetch`. */
  request(
    name: AdminOperationName,
    { params = {}, query = {}, body, token = this.token }: Sent,
  ): [string, RequestInit] {
    const { method, path }: AdminOperation = adminOperations[name];
    const filledPath = path.replaceAll(/\{(\w+)\}/g, (_, param: string) => encodeURIComponent(String(params[param])));
    const given = Object.entries(query).filter(([, value]) => value !== undefined);
    const search = new URLSearchParams(given.map(([key, value]): [string, string] => [key, String(value)])).toString();
    const headers = {
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const sent = body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };
    return [`${this.url}${filledPath}${search && `?${search}`}`, { method, headers, ...sent }];
  }

  /** Opens an answer of lines and collects them as they arrive. */
  async open(name: AdminOperationName, sent: Sent): Promise<OpenLines> {
    const gone = new AbortController();
    const [url, init] = this.request(name, sent);
    const response = await fetch(url, { ...init, signal: gone.signal });
    return new OpenLines(response, () => gone.abort());
  }

  /** Returns the number of rows of each table, except the counts of requests. */
  async rowCounts(): Promise<Record<string, number>> {
    const { rows: tables } = await this.pool.query<{ name: string }>(
      `select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'
         and table_name <> 'rate_limits'`,
    );
    const counts = tables.map(({ name }) => `(select count(*)::integer from ${name}) as ${name}`);
    const { rows } = await this.pool.query<Record<string, number>>(`select ${counts.join(', ')}`);
    return rows[0]!;
  }

  /** Returns the audit entries that the work adds, oldest first. */
  async entriesOf(work: () => Promise<unknown>): Promise<AuditEntry[]> {
    const before = await this.entries();
    await work();
    return (await this.entries()).slice(before.length);
  }

  async actionsOf(work: () => Promise<unknown>): Promise<string[]> {
    return (await this.entriesOf(work)).map(({ action }) => action);
  }

  private async entries(): Promise<AuditEntry[]> {
    const { rows } = await this.pool.query<AuditEntry>('select * from audit_entries order by id');
    return rows;
  }
}

function parseLines(text: string): unknown[] {
  const lines = text.split('\n').filter((line) => line !== '');
  return lines.map((line) => JSON.parse(line) as unknown);
}

/** The lines of an open answer. */
export class OpenLines {
  readonly lines: Record<string, unknown>[] = [];
  /** How the answer ended. Null while it is open. */
  end: 'whole' | 'broken' | null = null;

  constructor(
    readonly response: Response,
    /** Closes the connection, as a killed client does. */
    readonly disconnect: () => void,
  ) {
    void this.read().then(
      () => (this.end = 'whole'),
      () => (this.end = 'broken'),
    );
  }

  until(what: string, condition: (lines: Record<string, unknown>[]) => boolean): Promise<true> {
    return eventually(() => condition(this.lines), { what, timeoutMs: 10_000 });
  }

  ended(): Promise<'whole' | 'broken'> {
    return eventually(() => this.end, { what: 'the answer ends', timeoutMs: 10_000 });
  }

  private async read(): Promise<void> {
    const decoder = new TextDecoder();
    let rest = '';
    for await (const chunk of this.response.body!) {
      const lines = (rest + decoder.decode(chunk as Uint8Array, { stream: true })).split('\n');
      rest = lines.pop()!;
      for (const line of lines.filter(Boolean)) this.lines.push(JSON.parse(line) as Record<string, unknown>);
    }
  }
}
