import type { Http } from './http.ts';
import type { FileLink, PublicFile } from './types.ts';
import { newKey } from './idempotency-key.ts';

/** A file to upload. A `File` of a browser or of Node has a name; other content needs one. */
export type Upload = File | { name: string; content: Blob | Uint8Array<ArrayBuffer> | string };

export class Files {
  constructor(private readonly http: Http) {}

  /** Uploads a draft: a file that a message can carry, within 24 hours. */
  async upload(agentId: string, file: Upload, { key = newKey() }: { key?: string } = {}): Promise<PublicFile> {
    const given = 'content' in file ? file.content : file;
    const content = given instanceof Blob ? given : new Blob([given]);
    const body = (): FormData => {
      const form = new FormData();
      form.append('file', content, file.name);
      return form;
    };
    const path = `/agents/${agentId}/files`;
    const headers = { 'Idempotency-Key': key };
    return (await this.http.json<{ file: PublicFile }>({ method: 'POST', path, body, headers })).file;
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
