import {
  HarnessError,
  pricesOfModel,
  toolInputProblem,
  type Prices,
  type Harness,
  type RunContext,
  type Tool,
  type ToolPolicy,
} from '#agents';
import { toFinalOutput, type Command, type RecordedFact, type ToolCall } from '#domain';
import type { EarlierUsage } from '#event-store';
import { newId, pauseIfLong } from '#platform';
import { BoundedTranscript } from './bounded-transcript.ts';
import { FilesRefused, type Claim } from './claim.ts';
import { takeModelStep } from './model-step.ts';
import { callsToCheck, nextAction, type CallToRun, type NextAction, type Rules } from './next-action.ts';
import { DeltaWriter } from './deltas.ts';
import { publicCall, settledFact, takeToolStep, type ToolOutcome, type ToolStepParts } from './tool-step.ts';
import type { RunRoom } from './run-room.ts';
import type { ThreadFolder } from './thread-folder.ts';
import { tracedModelStep, tracedToolStep } from './traced-steps.ts';
import { toMessages, type TranscriptEvent } from './transcript.ts';
import { countStep } from './metrics.ts';

export interface ExecutionParts extends ToolStepParts {
  /** Aborts when the process stops. No further step begins then. */
  draining: AbortSignal;
}

/** The result of a boot. */
export interface Booted {
  context: RunContext;
  harness: Pick<Harness, 'step'>;
  tools: readonly Tool[];
  /** The policy of each tool, by its name. */
  policies: ReadonlyMap<string, ToolPolicy>;
  files: ThreadFolder;
  transcript: TranscriptEvent[];
  earlier: readonly EarlierUsage[];
  room: RunRoom;
}

/**
 * Executes one claimed Run step by step, to its end, a question or a hand-over. The facts of a step are stored before the next
 * step begins. Until then they wait in `pending`, to share one append with the next start of a tool, the question or the end.
 */
export class RunExecution {
  private readonly tools: ReadonlyMap<string, Tool>;
  private readonly rules: Rules;
  private readonly transcript: BoundedTranscript;
  /** The problem of each call's input; null if it fits. */
  private readonly inputProblems = new Map<string, string | null>();
  private pending: RecordedFact[] = [];
  /** Model steps begun under this claim; each delta carries the number of its step. */
  private steps = 0;

  constructor(
    private readonly parts: ExecutionParts,
    private readonly claim: Claim,
    private readonly booted: Booted,
  ) {
    this.tools = new Map(booted.tools.map((tool) => [tool.name, tool]));
    this.rules = this.rulesOf(booted);
    this.transcript = new BoundedTranscript(booted.transcript);
  }

  private rulesOf({ context: { manifest }, tools, policies, earlier }: Booted): Rules {
    const ruled = tools.map((tool) => {
      const { name, idempotent, readOnly = false } = tool;
      return [name, { policy: policies.get(name) ?? 'deny', idempotent, readOnly }] as const;
    });
    const inputProblem = ({ toolCallId }: ToolCall): string | null => this.inputProblems.get(toolCallId) ?? null;
    const pricesOf = (fallback?: number): Prices => pricesOfModel(manifest, fallback) ?? { input: 0, output: 0 };
    const { runId } = this.claim.job;
    return { runId, tools: new Map(ruled), inputProblem, limits: manifest.limits, pricesOf, earlier };
  }

  /** Checks each call once, because a check may take a while in the task pool. */
  private async checkInputs(): Promise<void> {
    const { runTask, signal } = this.booted.context;
    for (const call of callsToCheck(this.transcript.events)) {
      const tool = this.tools.get(call.toolName);
      if (tool === undefined || this.inputProblems.has(call.toolCallId)) continue;
      const onUnchecked = (error: unknown): void => {
        const about = { err: error, ...this.claim.names, toolName: tool.name };
        this.parts.logger.warn(about, 'tool input not checked');
      };
      this.inputProblems.set(call.toolCallId, await toolInputProblem(tool, call, { runTask, signal, onUnchecked }));
      await pauseIfLong();
    }
  }

  /** Executes the Run. Throws ClaimStopped, HarnessError and unexpected errors; the next `store` then stores pending facts. */
  async run(): Promise<void> {
    for (;;) {
      await this.checkInputs();
      // A message may have a thousand calls that are settled without being run.
      await pauseIfLong();
      this.claim.requireHeld();
      const action = nextAction(this.transcript.events, this.rules);
      switch (action.kind) {
        case 'model_step':
        case 'run_tools':
          if (this.parts.draining.aborted || this.booted.room.isFull)
            return this.store({ ...this.claim.fence, type: 'hand_over_run' });
          await (action.kind === 'run_tools' ? this.runTools(action.calls) : this.takeModelStep(action));
          break;
        case 'settle_tool':
          this.remember([settledFact(action.call, action.as, action.detail)]);
          break;
        case 'ask':
          return this.ask(action.calls);
        case 'complete':
          return this.store({ ...this.claim.fence, type: 'complete_run', finalOutput: toFinalOutput(action.text) });
        case 'give_up':
          throw new HarnessError(action.code);
      }
    }
  }

  /** Stores the pending facts and the command in one append. */
  async store(command?: Command): Promise<void> {
    const { pending } = this;
    const record: Command = { ...this.claim.fence, type: 'record', facts: pending };
    const commands = [...(pending.length > 0 ? [record] : []), ...(command ? [command] : [])];
    this.pending = [];
    // An append is serialized in one go, which may take as long as the work before it.
    await pauseIfLong();
    if (commands.length > 0) await this.claim.append(commands);
  }

  private remember(facts: RecordedFact[]): void {
    this.pending.push(...facts);
    this.transcribe(facts);
  }

  private transcribe(facts: readonly RecordedFact[]): void {
    for (const fact of facts) this.transcript.add(fact, this.claim.fence);
    this.booted.room.growBy(this.transcript.growth);
  }

  private async takeModelStep({ tokensLeft }: Extract<NextAction, { kind: 'model_step' }>): Promise<void> {
    await this.store();
    const { claim, booted } = this;
    const { harness, files } = booted;
    const tools = booted.tools.filter(({ name }) => this.rules.tools.get(name)?.policy !== 'deny');
    const transcript = toMessages(this.transcript.events);
    const left = tokensLeft === undefined ? {} : { tokensLeft };
    const { makeRoom, release } = booted.room.forStep();
    const context = { ...booted.context, transcript, tools, files, makeRoom, ...left };
    const writer = new DeltaWriter({ step: ++this.steps, claim });
    const counted = countStep('model');
    try {
      this.remember(await tracedModelStep(context, () => takeModelStep(harness, context, this.tools, writer)));
      counted('ok');
    } catch (error) {
      if (error instanceof HarnessError && error.code === 'token_limit_reached') await this.keepCut(writer, error);
      throw error;
    } finally {
      counted(claim.signal.aborted ? 'stopped' : 'error');
      writer.close();
      release();
    }
  }

  /** Keeps the text and usage of a cut message, to store them with the failure. The step is not repeated. */
  private async keepCut(writer: DeltaWriter, { more: { usage } }: HarnessError): Promise<void> {
    this.pending.push(...(await writer.finish()));
    if (usage) this.pending.push({ type: 'usage.recorded', data: usage });
  }

  /**
   * Runs calls at the same time. Stores each result as it comes, and the last one with the next append. If a call cannot continue,
   * the others are cut off, as with a lost worker. Stored results stay.
   */
  private async runTools(calls: CallToRun[]): Promise<void> {
    // Immediately before execution: it means "may have taken effect" (docs/spec/decisions.md#tool-use).
    const fresh = calls.filter(({ started }) => !started);
    this.remember(fresh.map(({ call }) => ({ type: 'tool.started', data: publicCall(call) })));
    await this.store();
    const { signal } = this.booted.context;
    const together = new AbortController();
    const abort = (): void => together.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    let running = calls.length;
    const run = async ({ call }: CallToRun): Promise<void> => {
      try {
        await this.runTool(call, together.signal);
        running -= 1;
        if (running > 0) await this.store();
      } catch (error) {
        together.abort(error);
        throw error;
      }
    };
    try {
      await Promise.allSettled(calls.map(run));
    } finally {
      signal.removeEventListener('abort', abort);
    }
    together.signal.throwIfAborted();
  }

  private async runTool(call: ToolCall, signal: AbortSignal): Promise<void> {
    const tool = this.tools.get(call.toolName);
    if (tool === undefined) throw new Error(`The tool ${call.toolName} does not exist.`);
    const { makeRoom, release } = this.booted.room.forCall();
    const context = { ...this.booted.context, signal, files: this.booted.files, makeRoom };
    try {
      const outcome = await tracedToolStep(call, () => takeToolStep(this.parts, tool, call, context));
      this.remember(await this.storeFiles(outcome));
    } finally {
      release();
    }
  }

  /**
   * Stores a result with files in a separate append, so that a refusal becomes the result of this call. Returns the facts that
   * are still to be stored.
   */
  private async storeFiles(outcome: ToolOutcome): Promise<RecordedFact[]> {
    const { facts, files, folder } = outcome;
    if (folder === undefined && files.length === 0) return facts;
    await this.store();
    try {
      await this.claim.record(facts, files, folder);
    } catch (error) {
      if (!(error instanceof FilesRefused)) throw error;
      return this.storeFiles(await outcome.refused(error.why));
    }
    this.transcribe(facts);
    return [];
  }

  /** Requests confirmation of all calls together, and releases the Run, which uses no slot while it waits. */
  private async ask(calls: ToolCall[]): Promise<void> {
    const asked = calls.map((call) => ({
      ...{ ...publicCall(call), requestId: newId() },
      ...(this.tools.get(call.toolName)?.destructive === true ? ({ destructive: true } as const) : {}),
    }));
    this.remember(asked.map((data) => ({ type: 'tool.confirmation_requested', data })));
    const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
    await this.store({ ...this.claim.fence, type: 'wait_for_decisions', requests });
  }
}
