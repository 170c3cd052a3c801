import { createReadStream } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { Readable } from 'node:stream';
import type { ManifestFile } from '#agents';
import { CommandError } from './exit-codes.ts';
import { countOf, showControls } from './text.ts';

const MANIFEST = /\.(ya?ml|json)$/i;

/**
 * Returns the manifests in these files, in all *.yaml, *.yml and *.json files below these folders, and on standard input for
 * `-`. Throws a CommandError that lists all problems.
 */
export async function readManifests(sources: readonly string[]): Promise<ManifestFile[]> {
  const { manifests, problems } = await tryManifests(sources);
  if (problems.length === 0) return manifests;
  const summary = `${countOf(problems.length, 'problem')}; nothing was sent.`;
  throw new CommandError('usage', [...problems.map(showControls), summary].join('\n'));
}

/**
 * Returns the manifests of the valid files, and the problems of the other files, each with its place. Throws CommandError if a
 * file cannot be read, or if there is no file.
 */
export async function tryManifests(sources: readonly string[]): Promise<{
  manifests: ManifestFile[];
  problems: string[];
}> {
  const { formatProblem, MAX_MANIFEST_BYTES, parseManifests } = await import('#agents');
  const manifests: ManifestFile[] = [];
  const problems: string[] = [];
  for (const file of await findFiles(sources)) {
    const name = file === '-' ? 'standard input' : file;
    const source = file === '-' ? process.stdin : createReadStream(file);
    const parsed = parseManifests(await read(name, () => readStart(source, MAX_MANIFEST_BYTES)), name);
    manifests.push(...parsed.manifests);
    problems.push(...parsed.problems.map(formatProblem));
  }
  if (manifests.length + problems.length === 0) throw new CommandError('usage', 'No manifests found.');
  return { manifests, problems };
}

/**
 * Returns the problems that the service found in the manifests, with their places in the files. Only the service knows its
 * harnesses, and only a program understands `manifests.3.harness.pauseMs: …`.
 */
export async function placeProblems(message: string, manifests: readonly ManifestFile[]): Promise<string> {
  const { formatProblem } = await import('#agents');
  const placed = message.split('; ').map((problem) => {
    const [, index, path = '', text = ''] = /^manifests\.(\d+)\.([\w.-]*): (.*)$/s.exec(problem) ?? [];
    const manifest = manifests[Number(index)];
    return manifest
      ? formatProblem(manifest.problemOf({ path: path.split('.'), at: 'value', message: text }))
      : problem;
  });
  return placed.join('\n');
}

/** Returns the paths of the files in the given order, those of a folder by name. No path is listed twice. */
async function findFiles(sources: readonly string[]): Promise<Set<string>> {
  const files = new Set<string>();
  for (const source of sources) {
    const isFolder = source !== '-' && (await read(source, () => stat(source))).isDirectory();
    if (!isFolder) files.add(normalize(source));
    else for (const name of await read(source, () => listFolder(source))) files.add(join(source, name));
  }
  return files;
}

async function listFolder(folder: string): Promise<string[]> {
  const names = await readdir(folder, { recursive: true });
  return names.filter((name) => MANIFEST.test(name)).sort();
}

/** Reads at most one chunk beyond the bound, so that `parseManifests` refuses the file by its size. */
async function readStart(source: Readable, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of source as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > maxBytes) break;
  }
  return Buffer.concat(chunks).toString();
}

async function read<T>(path: string, act: () => Promise<T>): Promise<T> {
  return act().catch((error: NodeJS.ErrnoException) => {
    throw new CommandError('usage', `${path} cannot be read: ${error.code}.`);
  });
}
