import { toBlob, type Files, type Upload, type UploadOptions } from './files.ts';
import type { FileResource } from './types.ts';

export interface AttachOptions extends Pick<UploadOptions, 'onProgress' | 'signal'> {
  /** Ids of drafts, or files to upload first. `onProgress` gets the bytes of all files. */
  files?: readonly (string | Upload)[];
}

const isDraft = (file: string | Upload): file is string => typeof file === 'string';

/** Uploads the files that are no drafts yet, and returns all of them for a message. If one fails, the others are given up. */
export async function attach(
  files: Files,
  agentId: () => Promise<string>,
  { files: given = [], onProgress, signal }: AttachOptions,
  key: string,
): Promise<FileResource[]> {
  if (given.every(isDraft)) return given.map(toResource);
  const agent = await agentId();
  const failing = new AbortController();
  const options = { signal: signal ? AbortSignal.any([signal, failing.signal]) : failing.signal };
  const report = onProgress && total(given, onProgress);
  const upload = async (file: string | Upload, i: number): Promise<FileResource> => {
    if (isDraft(file)) return toResource(file);
    const { id } = await files.upload(agent, file, { ...options, key: `${key}-${i}`, onProgress: report?.(i) });
    return toResource(id);
  };
  return Promise.all(given.map(upload)).finally(() => failing.abort());
}

const toResource = (id: string): FileResource => ({ type: 'file', file_id: id });

/** Returns a function that makes the report of each file, which counts the bytes of all files together. */
function total(files: readonly (string | Upload)[], onProgress: NonNullable<UploadOptions['onProgress']>) {
  const totalBytes = sum(files.map((file) => (isDraft(file) ? 0 : toBlob(file).size)));
  const sent = files.map(() => 0);
  return (i: number): UploadOptions['onProgress'] =>
    ({ sentBytes }) => {
      sent[i] = sentBytes;
      onProgress({ sentBytes: sum(sent), totalBytes });
    };
}

const sum = (numbers: number[]): number => numbers.reduce((left, right) => left + right, 0);
