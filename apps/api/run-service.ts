import { operations, type ListRunsAnswer, type RunAnswer } from '#contract';
import { newId } from '#platform';
import type { ThreadReader, Threads } from '#threads';
import type { ApiRequest } from './http/caller.ts';
import type { Extensions } from './extensions.ts';
import { notFound } from './http/http-errors.ts';
import { answerOf, requestKey, type Answer, type Idempotency } from './idempotency.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { renderRun } from './render.ts';
import type { AccessGuard } from './access-guard.ts';
import { ANSWER_BYTES } from './http/large-answers.ts';

/** The Runs of a Thread. */
export class RunService {
  constructor(
    private readonly access: AccessGuard,
    private readonly threads: Threads,
    private readonly reader: ThreadReader,
    private readonly summaries: SummaryReader,
    private readonly idempotency: Idempotency,
    private readonly extensions: Extensions,
  ) {}

  async getRun(request: ApiRequest<typeof operations.getRun>): Promise<RunAnswer> {
    const { caller, input } = request;
    const { threadId, runId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    const run = (await this.reader.findRuns(threadId, [runId])).get(runId);
    if (run === undefined) throw notFound('Run');
    return this.extensions.extend(request, { run: renderRun(run) });
  }

  /** Creates a new Run. The domain chooses its trigger (docs/spec/decisions.md#trigger). */
  async retryRun(request: ApiRequest<typeof operations.retryRun>): Promise<Answer> {
    const { caller, input } = request;
    const { threadId, runId } = input.params;
    const { agent } = await this.access.findVisibleThread(caller, threadId);
    const found = await this.reader.findRuns(threadId, [runId]);
    if (!found.has(runId)) throw notFound('Run');
    const key = await requestKey(request, operations.retryRun, input.body);
    const newRunId = newId();
    const retried = this.threads.retry(
      { threadId, agent, runId, newRunId },
      { answer: ({ thread }) => answerOf(key, { run: renderRun(thread.summaries.runs.get(newRunId)!) }) },
    );
    return this.idempotency.settle(request, key, retried);
  }

  async listRuns(request: ApiRequest<typeof operations.listRuns>): Promise<ListRunsAnswer> {
    const { caller, input } = request;
    const { threadId } = input.params;
    const { limit, cursor } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    const { runs, isCut } = await this.summaries.listRuns(threadId, cursor ?? null, { limit, maxBytes: ANSWER_BYTES });
    const nextCursor = isCut ? (runs.at(-1)?.run_id ?? null) : null;
    return this.extensions.extend(request, { runs: runs.map(renderRun), nextCursor });
  }
}
