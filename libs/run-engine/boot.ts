import {
  NoRoom,
  toolPolicies,
  type AgentCatalogue,
  type AgentManifest,
  type Harness,
  type Harnesses,
  type Tool,
  type ToolPolicy,
} from '#agents';
import { findLiveRun, type LiveRun, type ThreadState } from '#domain';
import type { EarlierUsage, SmallTranscript, ThreadStore } from '#event-store';
import type { BlobKeeper, FileStore } from '#files';
import { pauseIfLong, untilAborted, type Logger } from '#platform';
import type { TaskPool } from '#task-pool';
import { measure, TRANSCRIPT_BOUNDS } from './bounded-transcript.ts';
import { ProviderFailing, type Circuits } from './circuits.ts';
import type { Claim } from './claim.ts';
import { asHarnessError } from './model-step.ts';
import { NOTHING_EARLIER } from './next-action.ts';
import { RunExecution } from './run-execution.ts';
import type { RunRoom } from './run-room.ts';
import { ThreadFolder, type FolderLimits } from './thread-folder.ts';
import { tracedBoot } from './traced-steps.ts';
import { transcriptOf, type TranscriptEvent } from './transcript.ts';
import { countBoot } from './metrics.ts';

export interface BootParts {
  store: ThreadStore;
  catalogue: AgentCatalogue;
  harnesses: Harnesses;
  blobs: BlobKeeper;
  files: FileStore;
  folderLimits: FolderLimits;
  tasks: TaskPool;
  circuits: Circuits;
  logger: Logger;
  /** The name of the worker process in claims. */
  holder: string;
}

/**
 * Boots a claimed Run: reads its agent, its tools and its transcript, and reserves memory for them. Counts the duration.
 * Throws NoRoom if there is not enough memory, HarnessError, and the reason of the claim's signal.
 */
export async function bootRun(
  parts: BootParts,
  claim: Claim,
  room: RunRoom,
  draining: AbortSignal,
): Promise<RunExecution> {
  const counted = countBoot();
  try {
    const execution = await tracedBoot(() => boot(parts, claim, room, draining));
    counted('ok');
    return execution;
  } catch (error) {
    const waits = error instanceof NoRoom || error instanceof ProviderFailing;
    counted(claim.signal.aborted || waits ? 'stopped' : 'error');
    throw error;
  }
}

async function boot(parts: BootParts, claim: Claim, room: RunRoom, draining: AbortSignal): Promise<RunExecution> {
  const { store, blobs, files, folderLimits: limits, tasks, circuits, logger, holder } = parts;
  const { threadId, runId } = claim.job;
  const { state, summaries } = claim.thread;
  const run = liveRun(state, runId);
  if (state.lifecycle === 'none' || run === undefined)
    throw new Error('The claimed Run is missing from the state of its Thread.');
  const early = claim.takeTranscript();
  // Starts before anything that can wait.
  let hasWaited = false;
  setImmediate(() => (hasWaited = true));
  const { manifest, harness } = await readAgent(parts, claim, state.agentId, run.agentVersion);
  const provider = circuits.guard(harness, manifest, run.streak?.circuit);
  await provider.admit();
  const userId = summaries.thread?.user_id ?? '';
  const about = { agentId: state.agentId, threadId, runId, attempt: claim.attempt };
  const runTask = tasks.runnerFor(state.organizationId);
  const openHold = () => room.openHold();
  const context = { ...about, userId, manifest, runTask, openHold, signal: claim.signal };
  // Lists of tools need memory too, so they come before the transcript, which may take all of the organization's memory.
  const tools = await untilAborted(harness.tools(context), claim.signal).catch((error: unknown) => {
    throw asHarnessError(error);
  });
  // After waiting, for tools or memory, the transcript is read again, because the Thread may have been deleted meanwhile.
  const events = await readTranscript(store, claim, room, () => (hasWaited ? null : early));
  // A Thread with a Run has a message. This one was deleted after the claim, and a model must not be called without messages.
  if (events.length === 0) claim.stop('gone');
  claim.signal.throwIfAborted();
  const earlier = await claim.read(() => earlierUsage(store, claim, events));
  const liveRunIds = new Set(state.runs.map(({ id }) => id));
  const queuedAt = summaries.runs.get(runId)?.created_at;
  const transcript = transcriptOf(events, { runId, queuedAt, liveRunIds });
  await measure(transcript);
  const place = { threadId, runId, folderId: state.kind === 'pet' ? state.agentId : threadId };
  const folder = new ThreadFolder({ files, blobs, limits, place });
  const steps = { blobs, maxFileBytes: limits.maxFileBytes, logger, holder, draining };
  const policies = await findPolicies(manifest, tools);
  return new RunExecution(steps, claim, {
    context,
    harness: provider,
    tools,
    policies,
    files: folder,
    transcript,
    earlier,
    room,
  });
}

/** Reads the transcript, unless it was read early, with the claim. Reserves memory for it. */
async function readTranscript(
  store: ThreadStore,
  claim: Claim,
  room: RunRoom,
  early: () => SmallTranscript | null,
): Promise<VersionedEvent[]> {
  const { threadId } = claim.job;
  const size = early()?.size ?? (await claim.read(() => store.measureTranscript(threadId, TRANSCRIPT_BOUNDS)));
  await room.reserve(size.bytes, claim.signal);
  const events = early()?.events ?? (await claim.read(() => store.readTranscript(threadId, TRANSCRIPT_BOUNDS, size)));
  return events as VersionedEvent[];
}

type VersionedEvent = TranscriptEvent & { version: number };

/** Returns what the Run used before the oldest event of a cut transcript, so that its limits count all steps. */
async function earlierUsage(
  store: ThreadStore,
  { job: { threadId, runId } }: Claim,
  [oldest, ...others]: readonly { version: number }[],
): Promise<readonly EarlierUsage[]> {
  const isWhole = oldest === undefined || others.length + 1 < TRANSCRIPT_BOUNDS.events;
  return isWhole ? NOTHING_EARLIER : store.readEarlierUsage(threadId, runId, oldest.version);
}

/** Finds the policy of each tool by its name, in slices, because each name is compared with up to 1,000 patterns. */
async function findPolicies(manifest: AgentManifest, tools: readonly Tool[]): Promise<ReadonlyMap<string, ToolPolicy>> {
  const policyOf = toolPolicies(manifest);
  const policies = new Map<string, ToolPolicy>();
  for (const tool of tools) {
    await pauseIfLong();
    policies.set(tool.name, policyOf(tool));
  }
  return policies;
}

async function readAgent(
  { catalogue, harnesses }: BootParts,
  claim: Claim,
  agentId: string,
  version: number,
): Promise<{ manifest: AgentManifest; harness: Harness }> {
  const manifest = await claim.read(() => catalogue.version(agentId, version));
  if (manifest === null) throw new Error(`Agent ${agentId} has no version ${version}.`);
  const harness = harnesses.get(manifest.harness.name);
  const lacks = await untilAborted(catalogue.readiness(manifest), claim.signal);
  if (harness === undefined || lacks.length > 0)
    throw new Error(`The agent is not ready: ${lacks.map(({ detail }) => detail).join(' ')}`);
  return { manifest, harness };
}

/** Returns the live Run with this id. */
export function liveRun(state: ThreadState, runId: string): LiveRun | undefined {
  return state.lifecycle === 'none' ? undefined : findLiveRun(state, runId);
}
