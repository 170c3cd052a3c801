import type { AddMessage, NewRun } from '#domain';
import type { Agent, AgentCatalogue } from './agent-catalogue.ts';
import type { ReadinessIssue } from './harness.ts';
import { runLimits } from './manifest.ts';

/** What new Runs of an agent start with. */
export interface RunPlan {
  run: Omit<NewRun, 'runId'>;
  whenBusy: AddMessage['whenBusy'];
}

/** As the live version has it; null where there is none, and what the agent lacks where it cannot run now. Throws DatabaseUnavailable. */
export async function planRuns(
  agents: AgentCatalogue,
  { id, liveVersion }: Pick<Agent, 'id' | 'liveVersion'>,
): Promise<{ plan: RunPlan } | { issues: readonly ReadinessIssue[] } | null> {
  const manifest = liveVersion === null ? null : await agents.version(id, liveVersion);
  if (liveVersion === null || manifest === null) return null;
  const issues = await agents.readiness(manifest);
  if (issues.length > 0) return { issues };
  return { plan: { run: { agentVersion: liveVersion, limits: runLimits(manifest) }, whenBusy: manifest.whenBusy } };
}
