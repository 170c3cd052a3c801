import type { AgentCatalogue } from '#agents';
import type { Caller } from '#access';
import {
  countCharacters,
  operations,
  type ListEventsAnswer,
  type SendEventsAnswer,
  type ThreadEventInput,
} from '#contract';
import { isTerminal, toExtendedLogEntry, toLogEntry, type Command } from '#domain';
import type { CommandHandler, CommandRequest, CommandResult, Handled, ThreadStore } from '#event-store';
import type { FileRefusal } from '#files';
import { isLargeJson, ownTurn, type Config } from '#platform';
import type { RunSummary } from '#projections';
import type { ApiRequest } from './caller.ts';
import { warningsOf } from './send-warnings.ts';
import { ApiError, notFound } from './http-errors.ts';
import type { Answer, Idempotency } from './idempotency.ts';
import { idsOf, type Drafts } from './files/drafts.ts';
import { addMessage, callerId, requirePlan } from './new-runs.ts';
import type { SummaryReader } from './queries/summary-reader.ts';
import { renderEventResult, renderThread, type Rendering } from './render.ts';
import type { AccessGuard, VisibleThread } from './access-guard.ts';
import { ANSWER_BYTES } from './large-answers.ts';

type SendRequest = ApiRequest<typeof operations.sendEvents>;
type ListRequest = ApiRequest<typeof operations.listEvents>;

type Settings = Pick<Config, 'EVENTS_PER_BATCH' | 'MESSAGE_TEXT_LIMIT'> & Rendering;

/** The events of a Thread: sending and reading them. */
export class EventService {
  constructor(
    private readonly access: AccessGuard,
    private readonly agents: AgentCatalogue,
    private readonly handler: CommandHandler,
    private readonly store: ThreadStore,
    private readonly summaries: SummaryReader,
    private readonly drafts: Drafts,
    private readonly idempotency: Idempotency,
    private readonly settings: Settings,
  ) {}

  async listEvents({ caller, input }: ListRequest): Promise<ListEventsAnswer> {
    const { threadId } = input.params;
    const { limit, after, before } = input.query;
    await this.access.findVisibleThread(caller, threadId);
    const bounds = { maxEvents: limit, maxBytes: ANSWER_BYTES };
    const { events, isCut } =
      after === undefined
        ? await this.store.readLogBefore(threadId, before ?? null, bounds)
        : await this.store.readLogAfter(threadId, after, bounds);
    if (isLargeJson(events)) await ownTurn();
    const show = input.extended ? toExtendedLogEntry : toLogEntry;
    return { events: events.map((event) => show(event)).filter((entry) => entry !== null), truncated: isCut };
  }

  /** The whole batch in one append, or nothing. */
  async sendEvents(request: SendRequest): Promise<Answer> {
    const { caller, input } = request;
    refuseTooMuch(input.body.events, this.settings);
    const visible = await this.access.findVisibleThread(caller, input.params.threadId);
    const { events } = input.body;
    let ended: ReadonlyMap<string, RunSummary> = new Map();
    return this.idempotency.answerOnce(request, operations.sendEvents, {
      perform: async (answer) => {
        const fileIds = events.flatMap((event) => (event.type === 'user_message' ? idsOf(event.resources) : []));
        const files = this.drafts.claim(caller, visible.agent.id, fileIds);
        const commands = await this.toCommands(events, await this.drafts.namesOf(fileIds), caller, visible);
        const hook = () => this.drafts.hookFor(files);
        const sent = { threadId: input.params.threadId, commands, answer, hook };
        const result = await this.apply(sent, (runs) => void (ended = runs));
        if ('outcomes' in result) {
          const runId = result.outcomes.find((outcome) => outcome.runId !== null)?.runId ?? undefined;
          request.trail = { ...request.trail, runId };
        }
        return this.drafts.orRefuse(result, files);
      },
      render: (handled) => renderSent(events, ended, handled, this.settings),
    });
  }

  private async toCommands(
    events: readonly ThreadEventInput[],
    fileNames: ReadonlyMap<string, string>,
    caller: Caller,
    { agent }: VisibleThread,
  ): Promise<Command[]> {
    const runs = events.some(({ type }) => type === 'user_message') ? await requirePlan(this.agents, agent) : null;
    const by = callerId(caller);
    return events.map((event): Command => {
      switch (event.type) {
        case 'user_message':
          if (runs === null) throw new Error('A message without a plan for its Run.');
          return addMessage(runs, caller, {
            text: event.text,
            requestId: requestIdOf(event),
            fileIds: idsOf(event.resources),
            fileNames,
          });
        case 'permission_decision':
          return { type: 'decide_permission', requestId: event.requestId, decision: event.decision, by };
        case 'user_interrupt':
          return { type: 'interrupt', runId: event.runId ?? null, by };
      }
    });
  }

  /** If a Run that an interrupt names has ended since the look-up, looks again. A Run ends once, so this is soon over. */
  private async apply(
    request: CommandRequest<FileRefusal> & { commands: readonly Command[] },
    onEnded: (runs: ReadonlyMap<string, RunSummary>) => void,
  ): Promise<CommandResult<FileRefusal>> {
    const named = request.commands.flatMap((command) => (command.type === 'interrupt' ? (command.runId ?? []) : []));
    for (let endedBefore = -1; ;) {
      const found = await this.summaries.findRuns(request.threadId, named);
      if (named.some((runId) => !found.has(runId))) throw notFound('Run');
      const endedRuns = new Map([...found].filter(([, { status }]) => isTerminal(status)));
      onEnded(endedRuns);
      const result = await this.handler.handle({ ...request, endedRuns });
      const endedMeanwhile = result.outcome === 'rejected' && result.rejection.rejected === 'run_not_live';
      if (!endedMeanwhile || endedRuns.size === endedBefore) return result;
      endedBefore = endedRuns.size;
    }
  }
}

/**
 * Refuses what exceeds the settings of this installation, which can be lower than the limits of
 * docs/spec/decisions.md#limits.
 */
function refuseTooMuch(
  events: readonly ThreadEventInput[],
  { EVENTS_PER_BATCH: maxEvents, MESSAGE_TEXT_LIMIT: maxLength }: Settings,
): void {
  if (events.length > maxEvents) {
    throw new ApiError('invalid_field', `body.events: must have at most ${maxEvents} items`);
  }
  // No text has more characters than UTF-16 units.
  const isTooLong = (text: string): boolean => text.length > maxLength && countCharacters(text) > maxLength;
  const tooLong = events.findIndex((event) => event.type === 'user_message' && isTooLong(event.text));
  if (tooLong === -1) return;
  throw new ApiError('invalid_field', `body.events.${tooLong}.text: must have at most ${maxLength} characters`);
}

/** By either of its names; where both are given they are equal. */
function requestIdOf(event: ThreadEventInput): string | null {
  if (event.type === 'user_interrupt') return null;
  return event.requestId ?? ('clientRequestId' in event ? (event.clientRequestId ?? null) : null);
}

function renderSent(
  events: readonly ThreadEventInput[],
  ended: ReadonlyMap<string, RunSummary>,
  { thread: { summaries }, events: stored, outcomes }: Handled,
  settings: Rendering,
): SendEventsAnswer {
  const { thread, runs } = summaries;
  if (thread === null) throw new Error('A batch was applied to a Thread without a summary.');
  const results = events.map((event, i) => {
    const runId = outcomes[i]?.runId ?? '';
    return renderEventResult(event.type, requestIdOf(event), runs.get(runId) ?? ended.get(runId), settings);
  });
  const acceptedAt = stored.at(-1)?.occurredAt ?? new Date().toISOString();
  return { acceptedAt, events: results, thread: renderThread(thread, settings), warnings: warningsOf(outcomes) };
}
