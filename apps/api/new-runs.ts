import { runLimits, type Agent, type AgentCatalogue, type Lack } from '#agents';
import type { Caller } from '#access';
import type { AddMessage, NewRun } from '#domain';
import { newId } from '#platform';
import { agentError, ApiError } from './http-errors.ts';

/** What new Runs of an agent start with. */
export interface RunPlan {
  run: Omit<NewRun, 'runId'>;
  whenBusy: AddMessage['whenBusy'];
}

/** Throws ApiError `readiness_blocked` where the agent cannot run now: then no Run is made. */
export async function planRuns(agents: AgentCatalogue, { id, liveVersion }: Agent): Promise<RunPlan> {
  const manifest = liveVersion === null ? null : await agents.version(id, liveVersion);
  if (liveVersion === null || manifest === null) throw agentError('service_inactive');
  const lacks = await agents.readiness(manifest);
  if (lacks.length > 0) throw new ApiError('readiness_blocked', `The Agent cannot run now: ${messagesOf(lacks)}.`);
  return { run: { agentVersion: liveVersion, limits: runLimits(manifest) }, whenBusy: manifest.whenBusy };
}

/** Each once; the details are for operators. */
function messagesOf(lacks: readonly Lack[]): string {
  return [...new Set(lacks.map(({ message }) => message))].join('; ');
}

/** A message as a command, with the Run that it asks for. */
export function addMessage(
  plan: RunPlan,
  caller: Caller,
  message: Pick<AddMessage, 'text' | 'requestId' | 'fileIds'>,
): AddMessage {
  return { type: 'add_message', ...message, run: newRun(plan), whenBusy: plan.whenBusy, by: callerId(caller) };
}

export function newRun({ run }: RunPlan): NewRun {
  return { ...run, runId: newId() };
}

/** Who it was, in events: the person, or the token where there is none. */
export function callerId(caller: Caller): string {
  return caller.kind === 'person' ? caller.personId : caller.tokenId;
}
