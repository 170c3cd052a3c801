import { lstat, mkdir, readlink, realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { ConfigError, type ToolServerFolder } from '#platform';
import { isWithin } from '../secrets.ts';
import type { SandboxView } from './bubblewrap-args.ts';

export interface SharedFolders {
  folders: readonly ToolServerFolder[];
  /** Files and folders that no program may see. Folders are empty below `folders`; files may not be there. */
  hidden: readonly string[];
  /** Folders among `hidden` that the service creates when it needs them. */
  ownFolders: readonly string[];
}

interface Hidden {
  path: string;
  real: string;
  /** The path with its own symbolic link, if it is one, and without any other. */
  placed: string;
  isFolder: boolean;
}

/**
 * Returns what a program sees.
 *
 * @throws ConfigError if a folder is in a hidden one, or holds something that cannot be hidden for as long as a program runs
 */
export async function sandboxView(
  { folders: given, hidden: paths, ownFolders }: SharedFolders,
  { command, network }: { command: string; network: boolean },
): Promise<SandboxView> {
  const existing = await Promise.all(given.map(resolveFolder));
  const folders = existing.flatMap((folder) => folder ?? []).sort((a, b) => a.real.length - b.real.length);
  // Only a folder that exists can be hidden, and a program could run when the service creates it.
  for (const path of ownFolders)
    if (folders.some((folder) => isWithin(path, folder.real) || isWithin(path, folder.path)))
      await mkdir(path, { recursive: true, mode: 0o700 });
  const hidden = (await Promise.all(paths.map(resolveHidden))).flatMap((entry) => entry ?? []);
  for (const folder of folders) for (const entry of hidden) refuseShared(folder, entry);
  const systemLinks = (await Promise.all(['/bin', '/sbin', '/lib', '/lib32', '/lib64'].map(resolveLink))).flat();
  const program = { path: command, real: await realpath(command) };
  return { systemLinks, folders, hidden: hidden.map(({ real }) => real), program, network };
}

/**
 * A file or a link is replaced by a rename when a secret is rotated. The kernel then drops what hides it, and programs that
 * run already see the new one.
 */
function refuseShared({ path, real: folder }: SandboxView['folders'][number], hidden: Hidden): void {
  const { real, placed, isFolder } = hidden;
  const wrong = (what: string): ConfigError =>
    new ConfigError(`Wrong configuration: TOOL_SERVER_FOLDERS: ${path} ${what}`);
  if (isWithin(folder, real)) throw wrong(`is in ${hidden.path}, which belongs to the service`);
  if (isFolder && placed === real) return;
  if (isWithin(real, folder) || isWithin(placed, folder)) throw wrong(`holds the secret ${hidden.path}; move it`);
}

const resolveFolder = ({ path, writable }: ToolServerFolder) =>
  realpath(path).then(
    (real) => ({ path, real, writable }),
    () => null,
  );

async function resolveHidden(path: string): Promise<Hidden | null> {
  const real = await realpath(path).catch(() => null);
  if (real === null) return null;
  const placed = join(await realpath(dirname(path)), basename(path));
  return { path, real, placed, isFolder: (await lstat(real)).isDirectory() };
}

async function resolveLink(path: string): Promise<{ path: string; target: string | null }[]> {
  const found = await lstat(path).catch(() => null);
  if (found === null) return [];
  return [{ path, target: found.isSymbolicLink() ? await readlink(path) : null }];
}
