import { HarnessError, toolPolicy, type AgentManifest, type Harness, type Tool } from '#agents';
import { toFinalOutput, type Command, type RecordedFact, type ToolCall } from '#domain';
import type { PreparedFile } from '#files';
import { newId } from '#platform';
import type { Claim } from './claim.ts';
import { takeModelStep } from './model-step.ts';
import { nextAction, type NextAction, type Rules } from './next-action.ts';
import { PieceWriter } from './pieces.ts';
import { publicCall, settledFact, takeToolStep, type ToolStepParts } from './tool-step.ts';
import { toMessages, type TranscriptEvent } from './transcript.ts';

export interface ExecutionParts extends ToolStepParts {
  /** Whether the process stops: then no further step begins. */
  isDraining: () => boolean;
}

/** What boot has found out. */
export interface Booted {
  manifest: AgentManifest;
  harness: Harness;
  tools: readonly Tool[];
  userId: string;
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
  private pending: RecordedFact[] = [];
  private files: PreparedFile[] = [];

  constructor(
    private readonly parts: ExecutionParts,
    private readonly claim: Claim,
    private readonly booted: Booted,
  ) {
    const { manifest, tools } = booted;
    this.tools = new Map(tools.map((tool) => [tool.name, tool]));
    const ruled = tools.map(
      (tool) => [tool.name, { policy: toolPolicy(manifest, tool), idempotent: tool.idempotent }] as const,
    );
    this.rules = { runId: claim.offer.runId, tools: new Map(ruled), maxSteps: manifest.limits.maxSteps };
  }

  /** Throws ClaimStopped, HarnessError and what nobody expected; what is pending then goes with the next `store`. */
  async run(): Promise<void> {
    for (;;) {
      const action = nextAction(this.booted.transcript, this.rules);
      switch (action.kind) {
        case 'model_step':
        case 'run_tool':
          if (this.parts.isDraining()) return this.store({ ...this.claim.fence, type: 'hand_over_run' });
          await this.takeStep(action);
          break;
        case 'settle_tool':
          this.remember([settledFact(action.call, action.as)]);
          break;
        case 'ask':
          return this.ask(action.calls);
        case 'complete':
          return this.store({ ...this.claim.fence, type: 'complete_run', finalOutput: toFinalOutput(action.text) });
        case 'give_up':
          throw new HarnessError('step_limit_reached');
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
    for (const fact of facts) {
      if (isTranscribed(fact)) this.booted.transcript.push({ ...fact, ...this.claim.fence } as TranscriptEvent);
    }
  }

  private async takeStep(action: Extract<NextAction, { kind: 'model_step' | 'run_tool' }>): Promise<void> {
    if (action.kind === 'run_tool') return this.runTool(action.call, action.started);
    await this.store();
    const { claim, booted } = this;
    const { threadId, runId } = claim.offer;
    const { harness, manifest, userId } = booted;
    const { attempt, signal } = claim;
    const context = { threadId, runId, attempt, userId, manifest, transcript: toMessages(booted.transcript), signal };
    const writer = new PieceWriter({ append: (facts) => claim.append([{ ...claim.fence, type: 'record', facts }]) });
    try {
      this.remember(await takeModelStep(harness, context, this.tools, writer));
    } finally {
      writer.close();
    }
  }

  private async runTool(call: ToolCall, started: boolean): Promise<void> {
    // Immediately before execution: it means "may have taken effect" (decisions, section 3).
    if (!started) this.remember([{ type: 'tool.started', data: publicCall(call) }]);
    await this.store();
    const { offer, signal } = this.claim;
    const tool = this.tools.get(call.toolName);
    if (tool === undefined) throw new Error(`${call.toolName} is to be run and does not exist`);
    const context = { threadId: offer.threadId, runId: offer.runId, userId: this.booted.userId, signal };
    const { facts, files } = await takeToolStep(this.parts, tool, call, context);
    this.files.push(...files);
    this.remember(facts);
  }

  /** Asks for all calls together, and lets the Run go: it holds no worker while it waits. */
  private async ask(calls: ToolCall[]): Promise<void> {
    const asked = calls.map((call) => ({ ...publicCall(call), requestId: newId() }));
    this.remember(asked.map((data) => ({ type: 'tool.confirmation_requested', data })));
    const requests = asked.map(({ requestId, toolCallId }) => ({ requestId, toolCallId }));
    await this.store({ ...this.claim.fence, type: 'wait_for_decisions', requests });
  }
}

const TRANSCRIBED: readonly string[] = [
  'assistant.message_added',
  'tool.started',
  'tool.completed',
] satisfies TranscriptEvent['type'][];

function isTranscribed({ type }: RecordedFact): boolean {
  return TRANSCRIBED.includes(type);
}
