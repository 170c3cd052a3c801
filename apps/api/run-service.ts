import type { AgentCatalogue } from '#agents';
import { operations, type ListRunsAnswer, type RunAnswer } from '#contract';
import type { CommandHandler } from '#event-store';
import type { ApiRequest } from './caller.ts';
import { notFound } from './http-errors.ts';
import type { Answer, Idempotency } from './idempotency.ts';
import { newRun, requirePlan } from './new-runs.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { renderRun } from './render.ts';
import type { AccessGuard } from './access-guard.ts';
import { ANSWER_BYTES } from './large-answers.ts';

/** The Runs of a Thread. */
export class RunService {
  constructor(
    private readonly access: AccessGuard,
    private readonly agents: AgentCatalogue,
    private readonly handler: CommandHandler,
    private readonly summaries: SummaryReader,
    private readonly idempotency: Idempotency,
  ) {}

  async getRun({ caller, input }: ApiRequest<typeof operations.getRun>): Promise<RunAnswer> {
    const { threadId, runId } = input.params;
    await this.access.findVisibleThread(caller, threadId);
    const run = (await this.summaries.findRuns(threadId, [runId])).get(runId);
    if (run === undefined) throw notFound('Run');
    return { run: renderRun(run) };
  }

  /** A new Run, as the domain says which one (docs/spec/decisions.md#trigger). */
  async retryRun(request: ApiRequest<typeof operations.retryRun>): Promise<Answer> {
    const { caller, input } = request;
    const { threadId, runId } = input.params;
    const { agent } = await this.access.findVisibleThread(caller, threadId);
    const found = await this.summaries.findRuns(threadId, [runId]);
    if (!found.has(runId)) throw notFound('Run');
    const run: { id: string | null } = { id: null };
    return this.idempotency.answerOnce(request, operations.retryRun, {
      perform: async (answer) => {
        const retried = newRun(await requirePlan(this.agents, agent));
        run.id = retried.runId;
        return this.handler.handle({ threadId, commands: [{ type: 'retry_run', runId, run: retried }], answer });
      },
      render: ({ thread }): RunAnswer => ({ run: renderRun(thread.summaries.runs.get(run.id ?? '')!) }),
    });
  }

  async listRuns({ caller, input }: ApiRequest<typeof operations.listRuns>): Promise<ListRunsAnswer> {
    const { threadId } = input.params;
    const { limit, cursor } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    const { runs, isCut } = await this.summaries.listRuns(threadId, cursor ?? null, { limit, maxBytes: ANSWER_BYTES });
    return { runs: runs.map(renderRun), nextCursor: isCut ? (runs.at(-1)?.run_id ?? null) : null };
  }
}
