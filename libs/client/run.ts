import { SpoolError } from './errors.ts';
import type { Call, Http } from './http.ts';
import { path } from './path.ts';
import { ThreadStream } from './thread-stream.ts';
import type { Question, RunSummary } from './types.ts';
import { later } from './wait.ts';

export interface AnswerOptions {
  /** Milliseconds after which `answer` throws `timeout`. The Run continues. Default: none. */
  timeoutMs?: number;
  /** Ends the wait: `answer` throws the signal's reason. The Run continues. */
  signal?: AbortSignal | undefined;
}

/** The result of a Run, or its pending confirmation requests. */
export type Answer =
  | { status: 'completed'; text: string; questions: []; run: RunSummary }
  | { status: 'waiting_input'; text: null; questions: Question[]; run: RunSummary };

/** A Run of a Thread. */
export class Run {
  constructor(
    private readonly http: Http,
    readonly threadId: string,
    readonly id: string,
  ) {}

  async get(signal?: AbortSignal): Promise<RunSummary> {
    const call: Call = {
      ...{ method: 'GET', path: path`/threads/${this.threadId}/runs/${this.id}` },
      ...{ query: { extended: 'true' }, signal },
    };
    const { run } = await this.http.json<{ run: RunSummary }>(call);
    return run;
  }

  /**
   * Waits until the Run has completed or waits for a person. Throws SpoolError: `run_not_completed` if the Run fails, is cancelled
   * or expires, and `timeout`.
   */
  async answer({ timeoutMs = Infinity, signal }: AnswerOptions = {}): Promise<Answer> {
    const closing = new AbortController();
    const stop = later(timeoutMs, () => closing.abort());
    try {
      const answer = await this.follow(signal ? AbortSignal.any([signal, closing.signal]) : closing.signal);
      if (answer !== null) return answer;
    } catch (error) {
      if (!closing.signal.aborted) throw error;
    } finally {
      stop();
      closing.abort();
    }
    signal?.throwIfAborted();
    throw new SpoolError('timeout', `The Run has not ended after ${timeoutMs} ms.`);
  }

  /** Reads the Run again whenever its status may have changed. Returns null if the signal aborts. */
  private async follow(signal: AbortSignal): Promise<Answer | null> {
    const first = toAnswer(await this.get(signal));
    if (first !== null) return first;
    // The ids of a Run's entries are later than its own.
    const stream = new ThreadStream(this.http, this.threadId, { after: this.id, signal });
    for await (const { type, runId } of stream) {
      if (runId !== this.id || !CHANGES.has(type)) continue;
      const answer = toAnswer(await this.get(signal));
      if (answer !== null) return answer;
    }
    return null;
  }
}

/** The entries after which a Run may have ended or wait for a person. */
const CHANGES: ReadonlySet<string> = new Set(['run.completed', 'run.failed', 'tool.confirmation.required']);

/** Returns null if the Run is still working. */
function toAnswer(run: RunSummary): Answer | null {
  const { status, finalOutput, error, requests = [] } = run;
  switch (status) {
    case 'completed':
      return { status, text: finalOutput?.text ?? '', questions: [], run };
    case 'waiting_input':
      return { status, text: null, questions: requests.filter(({ state }) => state === 'pending'), run };
    case 'failed':
    case 'cancelled':
    case 'expired':
      throw new SpoolError('run_not_completed', error?.message ?? `The Run is ${status}.`, {
        reason: error?.code ?? status,
      });
    case 'queued':
    case 'booting':
    case 'running':
      return null;
  }
}
