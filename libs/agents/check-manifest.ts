import { BOUNDS } from '#domain';
import type { Harnesses } from './harness.ts';
import { jsonWeight } from './json-weight.ts';
import { agentManifestSchema, manifestFileSchema, type AgentManifest } from './manifest.ts';
import { issueText, manifestIssues, type ManifestIssue } from './manifest-issues.ts';

const MAX_PROBLEMS = BOUNDS.manifests.problems.value;

const MAX_WEIGHT = BOUNDS.manifests.weight.value;

/** Returns whether a manifest is too large to be checked: the checks are one step of the event loop. */
export function isTooLargeManifest(value: unknown): boolean {
  return jsonWeight(value, MAX_WEIGHT) > MAX_WEIGHT;
}

/** A manifest as somebody sends it, checked as strictly as one in a file, with the settings of its harness. */
export function checkManifest(
  value: unknown,
  harnesses: Harnesses,
): { manifest: AgentManifest } | { problems: string[] } {
  const issues = manifestIssues(manifestFileSchema, value);
  if (issues.length > 0) return { problems: textsOf(issues) };
  const manifest = agentManifestSchema.parse(value);
  const wrong = settingsIssues(manifest, harnesses);
  return wrong.length > 0 ? { problems: textsOf(wrong) } : { manifest };
}

/** What its harness says against its settings. One that this installation does not have says nothing: readiness does. */
function settingsIssues(manifest: AgentManifest, harnesses: Harnesses): ManifestIssue[] {
  return harnesses.get(manifest.harness.name)?.checkSettings(manifest) ?? [];
}

function textsOf(issues: readonly ManifestIssue[]): string[] {
  return issues.slice(0, MAX_PROBLEMS).map(issueText);
}
