import type { Http } from './http.ts';
import type { FileLink, PublicFile } from './types.ts';
import { newKey } from './idempotency-key.ts';
import type { Progress } from './progress.ts';

/** A file to upload. A `File` of a browser or of Node has a name; other content needs one. */
export type Upload = File | { name: string; content: Blob | Uint8Array<ArrayBuffer> | string };

export interface UploadOptions {
  /** The Idempotency-Key of all attempts. Default: random. */
  key?: string;
  /** Called while the file is sent, from the start again in each attempt. */
  onProgress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export class Files {
  constructor(private readonly http: Http) {}

  /** Uploads a draft: a file that a message can carry, within 24 hours. */
  async upload(agentId: string, file: Upload, options: UploadOptions = {}): Promise<PublicFile> {
    const { key = newKey(), onProgress, signal } = options;
    const given = 'content' in file ? file.content : file;
    const content = given instanceof Blob ? given : new Blob([given]);
    const totalBytes = content.size;
    const body = (): FormData => {
      const form = new FormData();
      form.append('file', content, file.name);
      return form;
    };
    const onSent =
      onProgress && ((bytes: number) => onProgress({ sentBytes: Math.min(bytes, totalBytes), totalBytes }));
    const headers = { 'Idempotency-Key': key };
    const call = { method: 'POST', path: `/agents/${agentId}/files`, body, headers, onSent, signal } as const;
    return (await this.http.json<{ file: PublicFile }>(call)).file;
  }

  /** Returns the response of the download. Its body is a stream; `blob()` reads it whole. */
  download(fileId: string): Promise<Response> {
    return this.http.send({ method: 'GET', path: `/files/${fileId}/content` });
  }

  /** Returns an address for `<img>` and downloads, which works without a token for five minutes. */
  link(fileId: string): Promise<FileLink> {
    return this.http.json({ method: 'GET', path: `/files/${fileId}/link` });
  }
}
