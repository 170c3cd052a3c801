import type { RunContext } from '#agents';
import type { EventOf, RecordedFact, ToolCall } from '#domain';
import { noteFailure, traced, type Attributes, type Span } from '#platform';
import type { Claim } from './claim.ts';
import type { ToolOutcome } from './tool-step.ts';

/** Traces the work on a claimed Run as the parent span of its boot, steps and appends. */
export function tracedRun(claim: Claim, work: () => Promise<void>): Promise<void> {
  const { threadId, runId } = claim.job;
  const { state } = claim.thread;
  return traced(
    'run',
    () => ({
      attributes: {
        'spool.thread.id': threadId,
        'spool.run.id': runId,
        'spool.run.attempt': claim.attempt,
        ...(state.lifecycle === 'none' ? {} : { 'gen_ai.agent.id': state.agentId }),
      },
    }),
    async (span) => {
      try {
        await work();
      } finally {
        if (span) noteEnd(span, claim);
      }
    },
  );
}

/** Traces the boot, which loads the agent version, the transcript and the tools. */
export function tracedBoot<T>(boot: () => Promise<T>): Promise<T> {
  return traced('boot', () => ({}), boot);
}

/** Sets the outcome. After a lost claim, the span of the next claim reports the status. */
function noteEnd(span: Span, { job, thread, stopReason }: Claim): void {
  if (stopReason !== null) span.setAttribute('spool.run.stop_reason', stopReason);
  if (stopReason === 'gone' || stopReason === 'unsure') return;
  const run = thread.summaries.runs.get(job.runId);
  if (run === undefined) return;
  span.setAttribute('spool.run.status', run.status);
  if (run.error) noteFailure(span, run.error);
}

export function tracedModelStep(
  { manifest: { harness, model } }: RunContext,
  take: () => Promise<RecordedFact[]>,
): Promise<RecordedFact[]> {
  const about = (): Attributes => ({
    'gen_ai.operation.name': 'chat',
    'spool.harness': harness.name,
    ...(model ? { 'gen_ai.provider.name': model.provider, 'gen_ai.request.model': model.name } : {}),
  });
  return traced(
    'step model',
    () => ({ attributes: about() }),
    async (span) => {
      const facts = await take();
      const usage = dataOf(facts, 'usage.recorded');
      if (usage) {
        span?.setAttribute('gen_ai.usage.input_tokens', usage.inputTokens);
        span?.setAttribute('gen_ai.usage.output_tokens', usage.outputTokens);
      }
      return facts;
    },
  );
}

export function tracedToolStep(
  { toolName, toolCallId }: ToolCall,
  take: () => Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const attributes = {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': toolName,
    'gen_ai.tool.call.id': toolCallId,
  };
  return traced(
    'step tool',
    () => ({ attributes }),
    async (span) => {
      const outcome = await take();
      const completed = dataOf(outcome.facts, 'tool.completed');
      if (completed) span?.setAttribute('spool.tool.outcome', completed.outcome);
      return outcome;
    },
  );
}

function dataOf<Type extends RecordedFact['type']>(
  facts: readonly RecordedFact[],
  type: Type,
): EventOf<Type>['data'] | undefined {
  return facts.find((fact) => fact.type === type)?.data as EventOf<Type>['data'] | undefined;
}
