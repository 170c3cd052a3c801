import { open, readFile, rm } from 'node:fs/promises';
import { basename } from 'node:path';
import type { Message, PublicFile, Spool } from '#client';
import { CommandError } from '../exit-codes.ts';
import { showInLine } from '../text.ts';

/** Uploads a file as a draft for the next message. Throws CommandError and SpoolError. */
export async function uploadFile(client: Spool, agentId: string, path: string): Promise<PublicFile> {
  if (path === '') throw new CommandError('usage', 'Name the file: /file PATH');
  const content = await readFile(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new CommandError('usage', `${path} cannot be read: ${code}.`);
  });
  return client.files.upload(agentId, { name: basename(path), content });
}

export interface SavedFile {
  fileId: string;
  path: string;
}

/**
 * Finds the newest file with a name or id, and the path to save it. Names may have spaces. Without a path, returns one in the current
 * directory and ignores directories in the name, because the name comes from the Agent. Throws CommandError.
 */
export function findFile(messages: readonly Message[], text: string): SavedFile {
  const files = messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'file')).reverse();
  const called = files.flatMap(({ fileId, name }) => [name, fileId].map((known) => ({ fileId, known: known ?? '' })));
  const [found] = called
    .filter(({ known }) => known !== '' && (text === known || text.startsWith(`${known} `)))
    // One name can begin with another.
    .toSorted((left, right) => right.known.length - left.known.length);
  if (found) return { fileId: found.fileId, path: text.slice(found.known.length).trim() || basename(found.known) };
  const names = [...new Set(files.map(({ name, fileId }) => showInLine(name ?? fileId)))];
  const there = names.length > 0 ? `This chat has: ${names.join(', ')}` : 'This chat has no files.';
  throw new CommandError(
    'notFound',
    text === '' ? `Name the file: /save NAME [PATH]. ${there}` : `No such file. ${there}`,
  );
}

/** Downloads a file to a new path. Never overwrites a file. Throws CommandError and SpoolError. */
export async function saveFile(client: Spool, { fileId, path }: SavedFile): Promise<void> {
  const { body } = await client.files.download(fileId);
  const file = await open(path, 'wx', 0o600).catch(async ({ code }: NodeJS.ErrnoException) => {
    await body?.cancel();
    throw new CommandError(
      'usage',
      code === 'EEXIST' ? `${path} already exists.` : `${path} cannot be written: ${code}.`,
    );
  });
  try {
    for await (const chunk of body ?? []) await file.appendFile(chunk as Uint8Array);
  } catch (error) {
    await rm(path, { force: true });
    throw new CommandError('failed', `${path} was not saved: ${(error as Error).message}`, { cause: error });
  } finally {
    await file.close();
  }
}
