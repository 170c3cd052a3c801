import { randomBytes } from 'node:crypto';
import { docxOf, pdfOf } from '#testing';
import { send, type Caller } from './client.ts';

const MEBIBYTE = 1024 * 1024;

/** Files that are about as large as a tool reads them. */
export const HEAVY_FILES = {
  // 30 pages with some text. What stands behind them is never looked at, but loaded.
  'large.pdf': () => Buffer.concat([pdfOf(Array<string>(30).fill('word '.repeat(2_000))), Buffer.alloc(31 * MEBIBYTE)]),
  // Text that packs badly, of which the first 4 MiB are read.
  'large.docx': () => docxOf(`<w:p><w:r><w:t>${randomBytes(15 * MEBIBYTE).toString('base64')}</w:t></w:r></w:p>`),
  'large.png': () => Buffer.concat([Buffer.from('\x89PNG\r\n\x1A\n', 'latin1'), Buffer.alloc(5 * MEBIBYTE - 8)]),
};
export type HeavyFile = keyof typeof HEAVY_FILES;

const made = new Map<HeavyFile, Uint8Array<ArrayBuffer>>();

let lastUpload: Promise<unknown> = Promise.resolve();

/** Creates a Thread with a message and one of the files, which is in the folder `attachments`. Throws unless it is created. */
export async function createWithFile(caller: Caller, text: string, name: HeavyFile): Promise<{ threadId: string }> {
  // One after the other, because bodies of ten such files at once are refused.
  const upload = lastUpload.then(() => uploadFile(caller, name));
  lastUpload = upload.catch(() => undefined);
  const input = { type: 'user.message', content: [{ type: 'text', text }] };
  const { status, body } = await send<{ thread: { id: string } }>(caller, 'POST', `/agents/${caller.agentId}/threads`, {
    userId: 'tester',
    input,
    resources: [{ type: 'file', file_id: await upload }],
  });
  if (status !== 201) throw new Error(`a Thread was not created: ${status} ${JSON.stringify(body)}`);
  return { threadId: body.thread.id };
}

async function uploadFile({ baseUrl, token, agentId }: Caller, name: HeavyFile): Promise<string> {
  const bytes = made.get(name) ?? new Uint8Array(HEAVY_FILES[name]());
  made.set(name, bytes);
  const body = new FormData();
  body.set('file', new Blob([bytes]), name);
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`${baseUrl}/agents/${agentId}/files`, { method: 'POST', headers, body });
  if (answer.status !== 201) throw new Error(`${name} was not uploaded: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { file: { id: string } }).file.id;
}
