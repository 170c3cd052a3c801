import { HarnessError, toolInputProblem, toolPolicy, type Harness, type RunContext, type Tool } from '#agents';
import { toFinalOutput, type Command, type RecordedFact, type ToolCall } from '#domain';
import type { PreparedFile } from '#files';
import { countStep, newId } from '#platform';
import { BoundedTranscript } from './bounded-transcript.ts';
import { FolderRefused, type Claim } from './claim.ts';
import { takeModelStep } from './model-step.ts';
import { nextAction, type CallToRun, type NextAction, type Rules } from './next-action.ts';
import { PieceWriter } from './pieces.ts';
import { publicCall, settledFact, takeToolStep, type ToolOutcome, type ToolStepParts } from './tool-step.ts';
import type { ThreadFolder } from './thread-folder.ts';
import { tracedModelStep, tracedToolStep } from './traced-steps.ts';
import { toMessages, type TranscriptEvent } from './transcript.ts';

export interface ExecutionParts extends ToolStepParts {
  /** Whether the process stops: then no further step begins. */
  isDraining: () => boolean;
}

/** What boot has found out. */
export interface Booted {
  context: RunContext;
  harness: Harness;
  tools: readonly Tool[];
  files: ThreadFolder;
  transcript: TranscriptEvent[];
}

/**
 * One claimed Run, step by step, to its end, a question or a hand-over. What a step leaves is stored before the next one
 * begins: it waits in `pending` for as long as nothing runs, so that it shares its append with what follows at once (the
 * start of the next tool, the question, the end).
 */
export class RunExecution {
  private readonly tools: ReadonlyMap<string, Tool>;
  private readonly rules: Rules;
  private readonly transcript: BoundedTranscript;
  private pending: RecordedFact[] = [];
  private files: PreparedFile[] = [];
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

  private rulesOf({ context: { manifest }, tools }: Booted): Rules {
    const ruled = tools.map((tool) => {
      const { name, idempotent, readOnly = false } = tool;
      return [name, { policy: toolPolicy(manifest, tool), idempotent, readOnly }] as const;
    });
    const problems = new WeakMap<ToolCall, string | null>();
    const inputProblem = (call: ToolCall): string | null => {
      if (!problems.has(call)) problems.set(call, this.inputProblem(call));
      return problems.get(call) ?? null;
    };
    const prices = manifest.model?.prices ?? { input: 0, output: 0 };
    const { runId } = this.claim.offer;
    return { runId, tools: new Map(ruled), inputProblem, limits: manifest.limits, prices };
  }

  private inputProblem(call: ToolCall): string | null {
    const tool = this.tools.get(call.toolName);
    if (tool === undefined) return null;
    return toolInputProblem(tool, call, (error) => {
      const about = { err: error, ...this.claim.names, toolName: tool.name };
      this.parts.logger.warn(about, 'the input of a tool cannot be checked here');
    });
  }

  /** Throws ClaimStopped, HarnessError and what nobody expected; what is pending then goes with the next `store`. */
  async run(): Promise<void> {
    for (;;) {
      const action = nextAction(this.transcript.events, this.rules);
      switch (action.kind) {
        case 'model_step':
        case 'run_tools':
          if (this.parts.isDraining()) return this.store({ ...this.claim.fence, type: 'hand_over_run' });
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

  /** Stores what is pending and what follows from it in one append. */
  async store(command?: Command): Promise<void> {
    const { pending, files } = this;
    const record: Command = { ...this.claim.fence, type: 'record', facts: pending };
    const commands = [...(pending.length > 0 ? [record] : []), ...(command ? [command] : [])];
    this.pending = [];
    this.files = [];
    if (commands.length > 0) await this.claim.append(commands, files);
  }

  private remember(facts: RecordedFact[]): void {
    this.pending.push(...facts);
    this.transcribe(facts);
  }

  private transcribe(facts: readonly RecordedFact[]): void {
    for (const fact of facts) this.transcript.add(fact, this.claim.fence);
  }

  private async takeModelStep({ tokensLeft }: Extract<NextAction, { kind: 'model_step' }>): Promise<void> {
    await this.store();
    const { claim, booted } = this;
    const { harness, files } = booted;
    const tools = booted.tools.filter(({ name }) => this.rules.tools.get(name)?.policy !== 'deny');
    const transcript = toMessages(this.transcript.events);
    const left = tokensLeft === undefined ? {} : { tokensLeft };
    const context = { ...booted.context, transcript, tools, files, ...left };
    const writer = new PieceWriter({
      step: ++this.steps,
      append: (facts) => claim.append([{ ...claim.fence, type: 'record', facts }]),
    });
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
    }
  }

  /** An answer that was cut is not repeated. Its text and usage are stored together with the failure. */
  private async keepCut(writer: PieceWriter, { more: { usage } }: HarnessError): Promise<void> {
    this.pending.push(...(await writer.finish()));
    if (usage) this.pending.push({ type: 'usage.recorded', data: usage });
  }

  /**
   * Each result is stored when it is there, the last with what follows. Where one cannot go on, the others are cut off, as
   * by a lost worker, and what they had stored stays.
   */
  private async runTools(calls: CallToRun[]): Promise<void> {
    // Immediately before execution: it means "may have taken effect" (decisions, section 3).
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
    if (tool === undefined) throw new Error(`${call.toolName} is to be run and does not exist`);
    const context = { ...this.booted.context, signal, files: this.booted.files };
    const outcome = await tracedToolStep(call, () => takeToolStep(this.parts, tool, call, context));
    const { facts, files } = outcome.folder ? await this.changeFolder(outcome) : outcome;
    this.files.push(...files);
    this.remember(facts);
  }

  /** Stores the call's result at once and alone, so that a folder that has moved on is an answer to this call; what is left. */
  private async changeFolder({
    facts,
    files,
    folder,
    refused,
  }: ToolOutcome): Promise<Pick<ToolOutcome, 'facts' | 'files'>> {
    await this.store();
    try {
      await this.claim.append([{ ...this.claim.fence, type: 'record', facts }], files, folder);
    } catch (error) {
      if (!(error instanceof FolderRefused)) throw error;
      return refused(error.why);
    }
    this.transcribe(facts);
    return { facts: [], files: [] };
  }

  /** Asks for all calls together, and lets the Run go: it holds no worker while it waits. */
  private async ask(calls: ToolCall[]): Promise<void> {
    const asked = calls.map((call) => ({ ...publicCall(call), requestId: newId() }));
    this.remember(asked.map((data) => ({ type: 'tool.confirmation_requested', data })));
    const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
    await this.store({ ...this.claim.fence, type: 'wait_for_decisions', requests });
  }
}
