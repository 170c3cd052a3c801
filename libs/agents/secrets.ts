import { open, realpath, type FileHandle } from 'node:fs/promises';
import { constants } from 'node:fs';
import { sep } from 'node:path';
import { isOwnVariable, listsVariable } from '#platform';
import { NotAllowed, SETTINGS, type Allowances } from './allowances.ts';
import type { AgentManifest, SecretReference } from './manifest.ts';

const MAX_SECRET_BYTES = 64 * 1024;

/** Thrown if a manifest names a missing secret. `message` tells operators its place, and never its value. */
export class SecretMissing extends Error {
  override name = 'SecretMissing';
}

/**
 * Returns the secret, which is never empty. Removes line breaks at its end, because `echo` and editors add them and no provider
 * accepts them. Throws SecretMissing, and NotAllowed if the installation does not allow manifests to name it.
 */
export async function resolveSecret(reference: SecretReference, allowances: Allowances): Promise<string> {
  if ('env' in reference) {
    requireVariable(reference.env, allowances);
    const secret = trimLineEnd(allowances.env[reference.env] ?? '');
    if (secret.trim() === '') throw new SecretMissing(`The variable ${reference.env} is not set, or is empty.`);
    return secret;
  }
  const secret = trimLineEnd(await readSecret(reference.file, allowances));
  if (secret.trim() === '') throw new SecretMissing(`The file ${reference.file} is empty.`);
  return secret;
}

const trimLineEnd = (secret: string): string => secret.replace(/[\r\n]+$/, '');

function requireVariable(name: string, { variables }: Allowances): void {
  if (isOwnVariable(name, SETTINGS))
    throw new NotAllowed(`The variable ${name} belongs to the service: no manifest may name it.`);
  if (listsVariable(variables, name)) return;
  throw new NotAllowed(`The variable ${name} is not allowed: add it to MANIFEST_VARIABLES.`, {
    setting: 'MANIFEST_VARIABLES',
    entry: name,
  });
}

async function readSecret(file: string, allowances: Allowances): Promise<string> {
  let handle: FileHandle | undefined;
  try {
    const real = await allowedFile(file, allowances);
    // Opens without waiting, because a pipe may never have a writer, and without following a link that was planted meanwhile.
    handle = await open(real, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    const found = await handle.stat();
    // A device or a pipe might never end.
    if (!found.isFile()) throw new SecretMissing(`${file} is not a file.`);
    if (found.size > MAX_SECRET_BYTES) throw new SecretMissing(`The file ${file} is too big for a secret.`);
    const secret = await handle.readFile('utf8');
    // Variables and headers cannot contain NUL, and Node's error would quote the secret in a form that is not hidden.
    if (secret.includes('\0')) throw new SecretMissing(`The file ${file} is not text.`);
    return secret;
  } catch (error) {
    if (error instanceof SecretMissing || error instanceof NotAllowed) throw error;
    throw new SecretMissing(`The file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  } finally {
    await handle?.close();
  }
}

/** Resolves links and `..` of a path. Throws NotAllowed, and errors of the file system. */
async function allowedFile(file: string, { files, ownFiles }: Allowances): Promise<string> {
  const refused = new NotAllowed(`The file ${file} is not allowed: add it or its folder to MANIFEST_FILES.`, {
    setting: 'MANIFEST_FILES',
    entry: file,
  });
  // Checked before the file is opened, so that the error does not tell whether another file exists.
  if (!files.some((path) => isWithin(file, path)) || file.split('/').includes('..')) throw refused;
  const real = await realpath(file);
  const [allowed, own] = await Promise.all([realPaths(files), realPaths([...ownFiles, '/proc', '/sys', '/dev'])]);
  if (own.some((path) => isWithin(real, path)))
    throw new NotAllowed(`The file ${file} belongs to the service: no manifest may name it.`);
  if (!allowed.some((path) => isWithin(real, path))) throw refused;
  return real;
}

const realPaths = (paths: readonly string[]): Promise<string[]> =>
  Promise.all(paths.map((path) => realpath(path).catch(() => path)));

/** Returns whether a path is another one, or is below it. */
export const isWithin = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep);

/** A reference in a manifest, with its place there. */
export interface PlacedSecret {
  path: string;
  reference: SecretReference;
}

/** Returns the secrets without which the agent cannot run, so not those of fallback models and optional tool servers. */
export function requiredSecrets(manifest: AgentManifest): PlacedSecret[] {
  const { model } = manifest;
  const secrets = serverSecrets(manifest, true);
  return model?.apiKey === undefined ? secrets : [{ path: 'model.apiKey', reference: model.apiKey }, ...secrets];
}

/** Returns the secrets without which the agent runs, but without some of its tools or fallback models. */
export function optionalSecrets(manifest: AgentManifest): PlacedSecret[] {
  const keys = (manifest.fallbackModels ?? []).flatMap(({ apiKey }, i) =>
    apiKey === undefined ? [] : [{ path: `fallbackModels.${i}.apiKey`, reference: apiKey }],
  );
  return [...keys, ...serverSecrets(manifest, false)];
}

function serverSecrets({ toolServers }: AgentManifest, required: boolean): PlacedSecret[] {
  return toolServers.flatMap((server, i) => {
    if (server.required !== required) return [];
    const [field, entries] = 'command' in server ? ['env', server.env] : ['headers', server.headers];
    return Object.entries(entries).flatMap(([name, value]) =>
      typeof value === 'string' ? [] : [{ path: `toolServers.${i}.${field}.${name}`, reference: value }],
    );
  });
}
