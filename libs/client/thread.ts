import type { Files } from './files.ts';
import { ifThere, type Http } from './http.ts';
import { newKey } from './idempotency-key.ts';
import { path } from './path.ts';
import { attach, type AttachOptions } from './resources.ts';
import { Run } from './run.ts';
import { ThreadStream, type StreamOptions } from './thread-stream.ts';
import type { Decision, MessagesPage, RunSummary, SendEventsAnswer, ThreadAnswer, ThreadEventInput } from './types.ts';

export interface SendOptions extends AttachOptions {
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

  async get(signal?: AbortSignal): Promise<ThreadAnswer> {
    return this.http.json({ method: 'GET', path: path`/threads/${this.id}`, query: EXTENDED, signal });
  }

  /** Sends a message, and returns the Run that answers it. All attempts have the same key, so the message is sent once. */
  async send(text: string, options: SendOptions = {}): Promise<Run> {
    const { key = newKey(), signal } = options;
    const agentId = async (): Promise<string> => (await this.get(signal)).thread.agent_id;
    const resources = await attach(this.files, agentId, options, key);
    const { events } = await this.post([{ type: 'user_message', text, resources }], key, signal);
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

  /**
   * Cancels a Run, or without `runId` the current one. A named Run that has ended is not changed. Without `runId`, throws
   * `idempotency_conflict` with the reason `no_active_run` if no Run is active.
   */
  async interrupt(runId?: string): Promise<void> {
    await this.post([{ type: 'user_interrupt', ...(runId !== undefined && { runId }) }], newKey());
  }

  /** Continues a Run that failed, was cancelled or expired, and returns the new Run. */
  async retry(runId: string): Promise<Run> {
    const headers = { 'Idempotency-Key': newKey() };
    const call = { method: 'POST', path: path`/threads/${this.id}/runs/${runId}/retry`, headers } as const;
    const { run } = await this.http.json<{ run: RunSummary }>(call);
    return this.run(run.id);
  }

  run(id: string): Run {
    return new Run(this.http, this.id, id);
  }

  /** Returns a page of whole messages, the newest page first. */
  async messages({ limit, before, attempts, signal }: MessagesOptions = {}): Promise<MessagesPage> {
    const query = { limit, before };
    return this.http.json({ method: 'GET', path: path`/threads/${this.id}/messages`, query, attempts, signal });
  }

  /** Returns the entries of the log, the past ones and all that follow. Reading it changes nothing. */
  stream(options: StreamOptions = {}): ThreadStream {
    return new ThreadStream(this.http, this.id, options);
  }

  /** Sets the title. Null restores the title of the first message. */
  async setTitle(title: string | null): Promise<void> {
    await this.http.json({ method: 'PATCH', path: path`/threads/${this.id}`, json: { title } });
  }

  /** Hides the Thread from lists. Refused while a Run is active. */
  async archive(): Promise<void> {
    await this.http.json({ method: 'POST', path: path`/threads/${this.id}/archive` });
  }

  async unarchive(): Promise<void> {
    await this.http.json({ method: 'POST', path: path`/threads/${this.id}/unarchive` });
  }

  /** Deletes the Thread with its events and files, for ever. Cancels its Runs. */
  async delete(): Promise<void> {
    await ifThere(this.http.json({ method: 'DELETE', path: path`/threads/${this.id}` }));
  }

  private async post(events: ThreadEventInput[], key: string, signal?: AbortSignal): Promise<SendEventsAnswer> {
    const headers = { 'Idempotency-Key': key };
    const call = { path: path`/threads/${this.id}/events`, query: EXTENDED, json: { events }, headers, signal };
    return this.http.json({ method: 'POST', ...call });
  }
}

const EXTENDED = { extended: 'true' };
