import type { AttachmentAdapter, PendingAttachment } from '@assistant-ui/react';
import type { Spool } from '#client';
import { reportFailure } from '../components/action.ts';

/** Uploads files as soon as they are added. Maps each attachment to the draft that a message references. */
export class DraftAttachments implements AttachmentAdapter {
  readonly accept = '*';
  private readonly drafts = new Map<string, { abort: AbortController; draftId: string | null }>();

  constructor(
    private readonly client: Spool,
    private readonly agentId: string,
  ) {}

  /** Returns the drafts of a message's attachments. */
  draftsOf(attachments: readonly { id: string }[]): string[] {
    return attachments.flatMap(({ id }) => this.drafts.get(id)?.draftId ?? []);
  }

  async *add({ file }: { file: File }): AsyncGenerator<PendingAttachment, void> {
    const id = crypto.randomUUID();
    const draft = { abort: new AbortController(), draftId: null as string | null };
    this.drafts.set(id, draft);
    const attachment = { id, type: 'file', name: file.name, contentType: file.type, file };
    let progress = 0;
    let report = (): void => undefined;
    const onProgress = ({ sentBytes, totalBytes }: { sentBytes: number; totalBytes: number }): void => {
      progress = sentBytes / totalBytes;
      report();
    };
    const uploaded = this.client.files.upload(this.agentId, file, { onProgress, signal: draft.abort.signal });
    try {
      for (let done = false; !done;) {
        yield { ...attachment, status: { type: 'running', reason: 'uploading', progress } };
        const changed = new Promise<boolean>((resolve) => (report = () => resolve(false)));
        done = await Promise.race([uploaded.then(() => true), changed]);
      }
      draft.draftId = (await uploaded).id;
    } catch (error) {
      this.drafts.delete(id);
      if (!draft.abort.signal.aborted) reportFailure(new Error(`${file.name}: ${(error as Error).message}`));
      throw error;
    }
    yield { ...attachment, status: { type: 'requires-action', reason: 'composer-send' } };
  }

  async remove({ id }: { id: string }): Promise<void> {
    const draft = this.drafts.get(id);
    this.drafts.delete(id);
    draft?.abort.abort();
    if (draft?.draftId) await this.client.files.delete(draft.draftId);
  }

  /** Throws if the file was not uploaded. Then no message is sent without it, and the text and files return to the field. */
  async send(attachment: PendingAttachment) {
    if (!this.drafts.get(attachment.id)?.draftId) {
      const error = new Error(`${attachment.name} was not uploaded. Remove it, or attach it again.`);
      reportFailure(error);
      throw error;
    }
    return { ...attachment, status: { type: 'complete' as const }, content: [] };
  }
}
