import type { FileChanges, FileRefusal, FileStore, Uploader } from '#files';
import type { Config } from '#platform';
import { ThreadRefused } from './refusal.ts';

export type DraftSettings = Pick<Config, 'DRAFT_AGE_MS' | 'FILES_PER_THREAD'>;

/** Drafts that a request attaches. Its append claims all of them, or none. */
export class Drafts {
  constructor(
    private readonly files: FileStore,
    private readonly settings: DraftSettings,
  ) {}

  /** Returns the changes that attach the drafts; undefined for no drafts. Throws ThreadRefused if they can never be attached. */
  claim(fileIds: readonly string[], agentId: string, owner: Uploader): FileChanges | undefined {
    const { DRAFT_AGE_MS: maxAgeMs, FILES_PER_THREAD: maxAttachments } = this.settings;
    const seen = new Set<string>();
    const twice = fileIds.find((fileId) => seen.size === seen.add(fileId).size);
    if (twice !== undefined) throw new ThreadRefused({ reason: 'draft_repeated', fileId: twice });
    if (fileIds.length === 0) return undefined;
    // A batch can name 10,000.
    if (fileIds.length > maxAttachments) throw this.tooMany();
    return { claimed: { fileIds, owner: { agentId, ...owner }, maxAgeMs }, maxAttachments };
  }

  /** Returns the changes that attach a stored file. */
  attach(file: NonNullable<FileChanges['added']>[number]): FileChanges {
    return { added: [file], maxAttachments: this.settings.FILES_PER_THREAD };
  }

  /** Returns the names of the drafts for the log. Without drafts, sends no query. */
  namesOf(fileIds: readonly string[]): Promise<ReadonlyMap<string, string>> {
    return fileIds.length === 0 ? Promise.resolve(new Map()) : this.files.findDraftNames(fileIds);
  }

  /** Returns the refusal of an append for its files. Names the first draft that the owner cannot attach. */
  async refusalFor(reason: FileRefusal, { claimed }: FileChanges): Promise<ThreadRefused> {
    switch (reason) {
      case 'files_full':
        return this.tooMany();
      case 'files_refused':
      case 'folder_moved':
      case 'folder_full':
      case 'artifacts_full': {
        const lost = claimed && (await this.files.findLostDraft(claimed));
        return new ThreadRefused(lost ? { reason: 'draft_not_found', fileId: lost } : { reason: 'files_contended' });
      }
      default:
        return new ThreadRefused({ reason });
    }
  }

  private tooMany(): ThreadRefused {
    return new ThreadRefused({ reason: 'too_many_attachments', max: this.settings.FILES_PER_THREAD });
  }
}
