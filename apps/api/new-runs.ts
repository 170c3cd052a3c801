import { planRuns, type Agent, type AgentCatalogue, type Lack, type RunPlan } from '#agents';
import type { Caller } from '#access';
import type { AddMessage, NewRun } from '#domain';
import { newId } from '#platform';
import { agentError, ApiError } from './http-errors.ts';

/** Throws ApiError `readiness_blocked` where the agent cannot run now: then no Run is made. */
export async function requirePlan(agents: AgentCatalogue, agent: Agent): Promise<RunPlan> {
  const planned = await planRuns(agents, agent);
  if (planned === null) throw agentError('service_inactive', agent);
  if ('plan' in planned) return planned.plan;
  throw new ApiError('agent_not_ready', `The Agent cannot run now: ${messagesOf(planned.lacks)}.`);
}

/** Each once; the details are for operators. */
function messagesOf(lacks: readonly Lack[]): string {
  return [...new Set(lacks.map(({ message }) => message))].join('; ');
}

/** A message as a command, with the Run that it asks for. */
export function addMessage(
  plan: RunPlan,
  caller: Caller,
  message: Pick<AddMessage, 'text' | 'requestId' | 'fileIds' | 'fileNames'>,
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
