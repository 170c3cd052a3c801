import { ownerFor, type Caller } from '#access';
import type { FileResource } from '#contract';
import type { AppendHook, CommandResult } from '#event-store';
import type { DraftClaim, DraftOwner, FileChanges, FileRefusal, FileStore } from '#files';
import type { Config } from '#platform';
import { ApiError, busyNow, fileQuotaFull } from '../http-errors.ts';

type Settings = Pick<Config, 'DRAFT_AGE_MS' | 'FILES_PER_THREAD'>;

/** Drafts that requests name: claimed by the append of their request, all or none. */
export class Drafts {
  constructor(
    private readonly files: FileStore,
    private readonly settings: Settings,
  ) {}

  /**
   * What an append needs to attach them; undefined where there are none. Throws ApiError where one is named twice, or where they
   * are more than a Thread can have.
   */
  claim(caller: Caller, agentId: string, fileIds: readonly string[]): FileChanges | undefined {
    const { DRAFT_AGE_MS: maxAgeMs, FILES_PER_THREAD: maxAttachments } = this.settings;
    const seen = new Set<string>();
    const twice = fileIds.find((fileId) => seen.size === seen.add(fileId).size);
    if (twice !== undefined) throw new ApiError('draft_repeated', `Draft file ${twice} is listed more than once.`);
    if (fileIds.length === 0) return undefined;
    // A batch can name 10,000.
    if (fileIds.length > maxAttachments) throw this.tooMany();
    const { personId, serviceTokenId } = ownerFor(caller);
    const claimed = { fileIds, agentId, ownerPersonId: personId, ownerServiceTokenId: serviceTokenId, maxAgeMs };
    return { claimed, maxAttachments };
  }

  /** Returns the hook that attaches them in the transaction of an append. */
  hookFor(changes: FileChanges | undefined): AppendHook<FileRefusal> | undefined {
    return changes && this.files.inAppend(changes);
  }

  /** Returns the names of the drafts for the log. Without drafts, sends no query. */
  namesOf(fileIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return fileIds.length === 0 ? Promise.resolve(new Map()) : this.files.findDraftNames(fileIds);
  }

  /** Throws ApiError where the append was refused for its files, naming the first that is no draft of the caller's. */
  async orRefuse(result: CommandResult<FileRefusal>, changes: FileChanges | undefined): Promise<CommandResult<never>> {
    if (result.outcome !== 'refused') return result;
    const { reason } = result;
    if (reason === 'reference_taken') return { ...result, reason };
    if (reason === 'files_full') throw this.tooMany();
    if (reason === 'quota_full') throw fileQuotaFull();
    const lost = changes?.claimed && (await this.files.findLostDraft(...lookUp(changes.claimed)));
    if (lost) throw new ApiError('draft_not_found', `There is no draft file ${lost}.`);
    throw busyNow('files_contended', 'Too many writers change the files; repeat the request.');
  }

  private tooMany(): ApiError {
    const message = `A Thread can have at most ${this.settings.FILES_PER_THREAD} attachments.`;
    return new ApiError('too_many_attachments', message);
  }
}

function lookUp(claim: DraftClaim): [readonly string[], DraftOwner, number] {
  const { fileIds, agentId, ownerPersonId: personId, ownerServiceTokenId: serviceTokenId, maxAgeMs } = claim;
  return [fileIds, { agentId, personId, serviceTokenId }, maxAgeMs];
}

export function idsOf(resources: readonly FileResource[] = []): string[] {
  return resources.map(({ file_id }) => file_id);
}
