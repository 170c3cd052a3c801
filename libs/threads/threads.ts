import type { PoolClient } from 'pg';
import { planRuns, type Agent, type AgentCatalogue, type RunPlan } from '#agents';
import {
  attachFile,
  deriveTitle,
  isTerminal,
  type AddMessage,
  type Command,
  type CreateThread,
  type NamedFile,
  type PermissionDecision,
  type Rejection,
  type RetryRun,
} from '#domain';
import {
  absentThread,
  type Answered,
  type AppendHook,
  type CommandHandler,
  type CommandRequest,
  type CommandResult,
  type LoadedThread,
} from '#event-store';
import type { BlobKeeper, FileChanges, FileRefusal, FileStore, PreparedFile, Uploader } from '#files';
import { newId } from '#platform';
import type { ThreadSummary } from '#projections';
import { Drafts, type DraftSettings } from './drafts.ts';
import { ThreadRefused } from './refusal.ts';
import type { ThreadReader } from './thread-reader.ts';

/** Each further try requires that another Thread with the same reference was created and deleted meanwhile. */
const REFERENCE_TRIES = 3;

/** Work that shares the transaction of a use case. A use case with files has no other hook. */
export interface Joining {
  /** Makes the answer to the request. */
  answer?: CommandRequest['answer'];
  /** Shares the transaction, such as an audit entry. */
  hook?: AppendHook<never>;
}

/** The caller whose drafts can be attached, and its id in events. */
export interface Sender {
  id: string;
  owner: Uploader;
}

export interface NewThread extends Pick<CreateThread, 'userId' | 'owner' | 'externalRef' | 'clientExternalRef'> {
  threadId: string;
  agent: Agent;
  fileIds: readonly string[];
  /** The text of the first message; undefined for a Thread without a message. */
  text: string | undefined;
}

/** An event that a caller sends to a Thread. */
export type SentEvent =
  | ({ type: 'message' } & Pick<AddMessage, 'text' | 'requestId' | 'fileIds'>)
  | { type: 'decision'; requestId: string; decision: PermissionDecision }
  | { type: 'interrupt'; runId: string | null };

export interface SentEvents {
  threadId: string;
  agent: Agent;
  events: readonly SentEvent[];
}

export type FileRemoval = { type: 'detach_file' | 'delete_file'; fileId: string } & NamedFile;

interface Retry extends Pick<RetryRun, 'runId' | 'isRepaired'> {
  threadId: string;
  agent: Agent;
  newRunId: string;
}

export interface ThreadsOptions {
  reader: ThreadReader;
  handler: CommandHandler;
  agents: AgentCatalogue;
  files: FileStore;
  blobs: BlobKeeper;
  settings: DraftSettings;
}

/**
 * The use cases of Threads, for callers and operators. They check no access. They throw ThreadRefused if nothing was changed, and
 * DatabaseUnavailable if the outcome is unknown.
 */
export class Threads {
  private readonly drafts: Drafts;
  private readonly reader: ThreadReader;

  constructor(private readonly options: ThreadsOptions) {
    this.drafts = new Drafts(options.files, options.settings);
    this.reader = options.reader;
  }

  /** Creates a Thread in one append. Reads nothing before it if the Agent is known and there are no files. */
  async create(thread: NewThread, sender: Sender, joining: Pick<Joining, 'answer'> = {}): Promise<Answered> {
    const { threadId, agent, userId, owner, externalRef, clientExternalRef, fileIds, text } = thread;
    const changes = this.drafts.claim(fileIds, agent.id, sender.owner);
    const fileNames = await this.drafts.namesOf(fileIds);
    const { id: agentId, organizationId, kind } = agent;
    const created: CreateThread = {
      ...{ type: 'create_thread', agentId, organizationId, kind, userId, owner },
      ...{ externalRef, clientExternalRef },
    };
    // Files without a message are attached immediately, so that the first Run mounts them (docs/spec/decisions.md#early-files).
    const first =
      text === undefined
        ? fileIds.map((fileId) => attachFile(fileId, fileNames.get(fileId)))
        : [addMessage(await this.plan(agent), sender, { text, requestId: null, fileIds: [...fileIds], fileNames })];
    const request = { threadId, from: absentThread(threadId), commands: [created, ...first] };
    for (let tries = 0; tries < REFERENCE_TRIES; tries++) {
      const result = await this.options.handler.handle<FileRefusal>({ ...request, ...this.joined(joining, changes) });
      const isTaken = result.outcome === 'refused' && result.reason === 'reference_taken';
      if (!isTaken || externalRef === undefined) return this.done(threadId, result, changes);
      const holder = await this.reader.findReferenced(created);
      if (holder !== null) throw new ThreadRefused({ reason: 'reference_taken', threadId: holder });
      // The Thread with the reference was deleted meanwhile.
    }
    throw new ThreadRefused({ reason: 'thread_contended' });
  }

  /** Applies all events in one append, or none. Returns with it the Runs that the events name and that had ended before. */
  async send(
    { threadId, agent, events }: SentEvents,
    sender: Sender,
    joining: Pick<Joining, 'answer'> = {},
  ): Promise<Answered> {
    const fileIds = events.flatMap((event) => (event.type === 'message' ? event.fileIds : []));
    const changes = this.drafts.claim(fileIds, agent.id, sender.owner);
    const fileNames = await this.drafts.namesOf(fileIds);
    const plan = events.some(({ type }) => type === 'message') ? await this.plan(agent) : null;
    const commands = events.map((event) => toCommand(event, sender, plan, fileNames));
    const named = events.flatMap((event) => (event.type === 'interrupt' ? (event.runId ?? []) : []));
    let endedRuns = await this.endedOf(threadId, named);
    // A named Run may end between the look-up and the append. A Run ends only once, so the loop ends.
    for (;;) {
      const request = { threadId, commands, endedRuns };
      const result = await this.options.handler.handle<FileRefusal>({ ...request, ...this.joined(joining, changes) });
      if (result.outcome !== 'rejected' || result.rejection.rejected !== 'run_not_live')
        return this.done(threadId, result, changes);
      const endedNow = await this.endedOf(threadId, named);
      if (endedNow.size === endedRuns.size) return this.done(threadId, result, changes);
      endedRuns = endedNow;
    }
  }

  /** Creates a Run that repeats one that has ended (docs/spec/decisions.md#trigger). */
  async retry({ threadId, agent, runId, newRunId, isRepaired = false }: Retry, joining: Joining): Promise<Answered> {
    const run = { ...(await this.plan(agent)).run, runId: newRunId };
    return this.change(threadId, [{ type: 'retry_run', runId, run, isRepaired }], joining);
  }

  /** Runs commands that need nothing else: archive, terminate, interrupt, decide. */
  async change(threadId: string, commands: CommandRequest['commands'], joining: Joining = {}): Promise<Answered> {
    return this.done(threadId, await this.options.handler.handle<FileRefusal>({ threadId, commands, ...joining }));
  }

  /**
   * Sets the title. Null restores the title of the first message. Returns false if this message arrived meanwhile.
   * Then read the Thread again and repeat the call.
   */
  async setTitle(thread: ThreadSummary, wanted: string | null): Promise<boolean> {
    const text = wanted === null ? await this.reader.findFirstMessage(thread.thread_id) : null;
    const title = wanted ?? deriveTitle(text ?? '');
    // A TERMINATED Thread refuses the title even if nothing would change.
    if (title === thread.title && thread.status !== 'TERMINATED') return true;
    // The first message never changes, but it may arrive after the look-up.
    let cameSince = false;
    await this.change(thread.thread_id, ({ summaries }: LoadedThread): Command[] => {
      cameSince = wanted === null && text === null && summaries.thread?.last_run_id !== null;
      return cameSince ? [] : [{ type: 'set_title', title }];
    });
    return !cameSince;
  }

  /** Deletes the Thread and its bytes. `within` shares the transaction. Returns whether the Thread existed. */
  async delete(threadId: string, within?: (client: PoolClient) => Promise<void>): Promise<boolean> {
    const blobKeys = await this.options.handler.deleteThread(threadId, within);
    if (blobKeys === null) return false;
    await this.options.blobs.discard(blobKeys);
    return true;
  }

  /** Attaches a draft of the sender. */
  async attachDraft(threadId: string, fileId: string, agentId: string, owner: Uploader): Promise<void> {
    const changes = this.drafts.claim([fileId], agentId, owner);
    const names = await this.drafts.namesOf([fileId]);
    const commands = [attachFile(fileId, names.get(fileId))];
    await this.done(
      threadId,
      await this.options.handler.handle<FileRefusal>({ threadId, commands, ...this.joined({}, changes) }),
      changes,
    );
  }

  /** Attaches a file whose bytes are stored. */
  async attachFile(threadId: string, file: PreparedFile): Promise<void> {
    const changes = this.drafts.attach(file);
    const commands = [attachFile(file.id, file.name)];
    await this.done(
      threadId,
      await this.options.handler.handle<FileRefusal>({ threadId, commands, ...this.joined({}, changes) }),
      changes,
    );
  }

  /** Removes a file of the Thread. With `sha256`, only if it still has these bytes. */
  async removeFile(threadId: string, command: FileRemoval, sha256?: string): Promise<void> {
    const changes = { removed: [command.fileId], ...(sha256 === undefined ? {} : { removedSha256: sha256 }) };
    const result = await this.options.handler.handle<FileRefusal>({
      threadId,
      commands: [command],
      ...this.joined({}, changes),
    });
    if (result.outcome === 'refused') throw new ThreadRefused({ reason: 'file_changed' });
    await this.done(threadId, result, changes);
  }

  private async plan(agent: Agent): Promise<RunPlan> {
    const planned = agent.deleted ? null : await planRuns(this.options.agents, agent);
    if (planned === null) throw new ThreadRefused({ reason: 'no_live_version' });
    if ('plan' in planned) return planned.plan;
    throw new ThreadRefused({ reason: 'agent_not_ready', issues: planned.issues });
  }

  /** Returns what shares the transaction of a use case with these changes of files. */
  private joined({ answer }: Pick<Joining, 'answer'>, changes: FileChanges | undefined) {
    return { answer, hook: changes && this.options.files.inAppend(changes) };
  }

  /** Returns those of the named Runs that have ended. Throws ThreadRefused if one does not exist. */
  private async endedOf(threadId: string, named: readonly string[]) {
    const found = await this.reader.findRuns(threadId, named);
    if (named.some((runId) => !found.has(runId))) throw new ThreadRefused({ reason: 'run_not_found' });
    return new Map([...found].filter(([, { status }]) => isTerminal(status)));
  }

  private async rejected(threadId: string, rejection: Rejection): Promise<ThreadRefused> {
    const { requestId } = rejection;
    const decision = requestId === undefined ? null : await this.reader.findDecision(threadId, requestId);
    return new ThreadRefused({ reason: 'rejected', rejection, ...(decision !== null && { decision }) });
  }

  private async done(
    threadId: string,
    result: CommandResult<FileRefusal>,
    changes: FileChanges = {},
  ): Promise<Answered> {
    switch (result.outcome) {
      case 'appended':
      case 'unchanged':
        return result;
      case 'rejected':
        throw await this.rejected(threadId, result.rejection);
      case 'key_taken':
        throw new ThreadRefused({ reason: 'key_taken' });
      case 'conflict':
        throw new ThreadRefused({ reason: 'thread_contended' });
      case 'refused':
        if (result.reason === 'reference_taken') throw new Error('A Thread without an externalRef was refused for it.');
        throw await this.drafts.refusalFor(result.reason, changes);
    }
  }
}

function toCommand(
  event: SentEvent,
  sender: Sender,
  plan: RunPlan | null,
  fileNames: ReadonlyMap<string, string>,
): Command {
  switch (event.type) {
    case 'message': {
      if (plan === null) throw new Error('A message without a plan for its Run.');
      const { text, requestId, fileIds } = event;
      return addMessage(plan, sender, { text, requestId, fileIds, fileNames });
    }
    case 'decision':
      return {
        type: 'decide_permission',
        requestId: event.requestId,
        decision: event.decision,
        by: sender.id,
      };
    case 'interrupt':
      return { type: 'interrupt', runId: event.runId, by: sender.id };
  }
}

function addMessage(
  plan: RunPlan,
  sender: Sender,
  message: Pick<AddMessage, 'text' | 'requestId' | 'fileIds' | 'fileNames'>,
): AddMessage {
  const run = { ...plan.run, runId: newId() };
  return { type: 'add_message', ...message, run, whenBusy: plan.whenBusy, by: sender.id };
}
