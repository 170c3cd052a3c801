import type { ListRunsAnswer, operations, RunAnswer } from '#contract';
import type { ApiRequest } from './caller.ts';
import { notFound } from './http-errors.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { renderRun } from './render.ts';
import type { AccessGuard } from './visible-thread.ts';

/** The Runs of a Thread. */
export class RunService {
  constructor(
    private readonly access: AccessGuard,
    private readonly summaries: SummaryReader,
  ) {}

  async getRun({ caller, input }: ApiRequest<typeof operations.getRun>): Promise<RunAnswer> {
    const { threadId, runId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    const run = (await this.summaries.findRuns(threadId, [runId])).get(runId);
    if (run === undefined) throw notFound('Run');
    return { run: renderRun(run) };
  }

  async listRuns({ caller, input }: ApiRequest<typeof operations.listRuns>): Promise<ListRunsAnswer> {
    const { threadId } = input.params;
    const { limit, cursor } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    // One more than asked for tells whether there is another page; the cursor is the last id of this one.
    const found = await this.summaries.listRuns(threadId, cursor ?? null, limit + 1);
    const page = found.slice(0, limit);
    const nextCursor = found.length > limit ? (page.at(-1)?.run_id ?? null) : null;
    return { runs: page.map(renderRun), nextCursor };
  }
}
