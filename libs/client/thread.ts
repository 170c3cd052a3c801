import type { Files, Upload } from './files.ts';
import type { Http } from './http.ts';
import { newKey } from './idempotency-key.ts';
import { Run } from './run.ts';
import { ThreadStream, type StreamOptions } from './thread-stream.ts';
import type {
  Decision,
  FileResource,
  MessagesPage,
  RunSummary,
  SendEventsAnswer,
  ThreadAnswer,
  ThreadEventInput,
} from './types.ts';

export interface SendOptions {
  /** Ids of drafts, or files to upload first. */
  files?: readonly (string | Upload)[];
  /** The Idempotency-Key. If the same message may be sent again later, such as after a restart, store it first. Default: random. */
  key?: string;
}

export interface MessagesOptions {
  /** How many Runs at most: 1 to 100. Default: 20. */
  limit?: number;
  /** The `nextCursor` of the page of newer messages. */
  before?: string;
  /** How often the request is sent until it succeeds. Default: 8. */
  attempts?: number;
  signal?: AbortSignal;
}

/** A conversation. Creating this object sends no request. */
export class Thread {
  constructor(
    private readonly http: Http,
    private readonly files: Files,
    readonly id: string,
  ) {}

  get(): Promise<ThreadAnswer> {
    return this.http.json({ method: 'GET', path: this.path(), query: EXTENDED });
  }

  /** Sends a message, and returns the Run that answers it. All attempts have the same key, so the message is sent once. */
  async send(text: string, { files = [], key = newKey() }: SendOptions = {}): Promise<Run> {
    const resources = await this.drafts(files, key);
    const { events } = await this.post([{ type: 'user_message', text, resources }], key);
    return new Run(this.http, this.id, events[0]!.run!.id);
  }

  /**
   * Decides a confirmation request. Throws `idempotency_conflict` with the reason `request_decided` if another decision counts; `decision`
   * of the error names it.
   */
  async decide(requestId: string, decision: Decision): Promise<void> {
    // With a key, a request that is repeated after a lost response succeeds.
    await this.post([{ type: 'permission_decision', requestId, decision }], newKey());
  }

  /** Cancels the current Run. */
  async interrupt(): Promise<void> {
    await this.post([{ type: 'user_interrupt' }], newKey());
  }

  /** Continues a Run that failed, was cancelled or expired, and returns the new Run. */
  async retry(runId: string): Promise<Run> {
    const path = `${this.path()}/runs/${runId}/retry`;
    const call = { method: 'POST', path, headers: { 'Idempotency-Key': newKey() } } as const;
    const { run } = await this.http.json<{ run: RunSummary }>(call);
    return this.run(run.id);
  }

  run(id: string): Run {
    return new Run(this.http, this.id, id);
  }

  /** Returns a page of whole messages, the newest page first. */
  messages({ limit, before, attempts, signal }: MessagesOptions = {}): Promise<MessagesPage> {
    const path = `${this.path()}/messages`;
    return this.http.json({ method: 'GET', path, query: { limit, before }, attempts, signal });
  }

  /** Returns the entries of the log, the past ones and all that follow. Reading it changes nothing. */
  stream(options: StreamOptions = {}): ThreadStream {
    return new ThreadStream(this.http, this.id, options);
  }

  /** Uploads the files that are no drafts yet. */
  private async drafts(files: readonly (string | Upload)[], key: string): Promise<FileResource[]> {
    const isDraft = (file: string | Upload): file is string => typeof file === 'string';
    const agentId = files.every(isDraft) ? '' : (await this.get()).thread.agent_id;
    const draftOf = async (file: string | Upload, i: number): Promise<FileResource> => ({
      type: 'file',
      file_id: isDraft(file) ? file : (await this.files.upload(agentId, file, { key: `${key}-${i}` })).id,
    });
    return Promise.all(files.map(draftOf));
  }

  private path(): string {
    return `/threads/${this.id}`;
  }

  private post(events: ThreadEventInput[], key: string): Promise<SendEventsAnswer> {
    const headers = { 'Idempotency-Key': key };
    return this.http.json({
      method: 'POST',
      path: `${this.path()}/events`,
      query: EXTENDED,
      json: { events },
      headers,
    });
  }
}

const EXTENDED = { extended: 'true' };
