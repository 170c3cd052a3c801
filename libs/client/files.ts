import { ifThere, type Http } from './http.ts';
import type { FileLink, PublicFile } from './types.ts';
import { newKey } from './idempotency-key.ts';
import { path } from './path.ts';
import type { Progress } from './progress.ts';

/** A file to upload. A `File` of a browser or of Node has a name; other content needs one. */
export type Upload = File | { name: string; content: Blob | Uint8Array | string };

export interface UploadOptions {
  /** The Idempotency-Key of all attempts. Default: random. */
  key?: string;
  /** Called while the file is sent, from the start again in each attempt. If it throws, the upload ends with its error. */
  onProgress?: ((progress: Progress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

export class Files {
  constructor(private readonly http: Http) {}

  /** Uploads a draft: a file that a message can carry, within 24 hours. */
  async upload(agentId: string, file: Upload, options: UploadOptions = {}): Promise<PublicFile> {
    const { key = newKey(), onProgress } = options;
    const content = toBlob(file);
    const body = (): FormData => {
      const form = new FormData();
      form.append('file', content, file.name);
      return form;
    };
    const { onSent, signal } = reporter(content.size, onProgress, options.signal);
    const headers = { 'Idempotency-Key': key };
    const call = { method: 'POST', path: path`/agents/${agentId}/files`, body, headers, onSent, signal } as const;
    return (await this.http.json<{ file: PublicFile }>(call)).file;
  }

  /** Returns the response of the download. Its body is a stream; `blob()` reads it whole. */
  async download(fileId: string): Promise<Response> {
    return this.http.send({ method: 'GET', path: path`/files/${fileId}/content` });
  }

  /** Deletes a draft, or a file of a Thread, for ever. */
  async delete(fileId: string): Promise<void> {
    await ifThere(this.http.json({ method: 'DELETE', path: path`/files/${fileId}` }));
  }

  /** Returns an address for `<img>` and downloads, which works without a token for five minutes. */
  async link(fileId: string): Promise<FileLink> {
    return this.http.json({ method: 'GET', path: path`/files/${fileId}/link` });
  }
}

export function toBlob(file: Upload): Blob {
  // Any bytes can be sent; the types of `Blob` refuse shared ones.
  const content = ('content' in file ? file.content : file) as Blob | Uint8Array<ArrayBuffer> | string;
  return content instanceof Blob ? content : new Blob([content]);
}

/** Returns a function that reports the progress, and a signal that also aborts when the report throws. */
function reporter(totalBytes: number, onProgress: UploadOptions['onProgress'], outer: AbortSignal | undefined) {
  if (onProgress === undefined) return { signal: outer };
  const failing = new AbortController();
  const signal = outer ? AbortSignal.any([outer, failing.signal]) : failing.signal;
  const onSent = (bytes: number): void => {
    if (signal.aborted) return;
    try {
      // The bytes include those of the form.
      onProgress({ sentBytes: Math.min(bytes, totalBytes), totalBytes });
    } catch (error) {
      failing.abort(error);
    }
  };
  return { onSent, signal };
}
