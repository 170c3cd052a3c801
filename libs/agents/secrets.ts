import { readFile, stat } from 'node:fs/promises';
import type { AgentManifest, SecretReference } from './manifest.ts';

const MAX_SECRET_BYTES = 64 * 1024;

/** There is no secret where a manifest says. `message` is one sentence for operators: where, and never what was there. */
export class SecretMissing extends Error {
  override name = 'SecretMissing';
}

/** The secret itself, never empty; of a file without the line break at its end. Throws SecretMissing. */
export async function resolveSecret(
  reference: SecretReference,
  env: Record<string, string | undefined>,
): Promise<string> {
  if ('env' in reference) {
    const secret = env[reference.env] ?? '';
    if (secret.trim() === '') throw new SecretMissing(`The variable ${reference.env} is not set, or is empty.`);
    return secret;
  }
  const secret = (await readSecret(reference.file)).replace(/(\r?\n)+$/, '');
  if (secret.trim() === '') throw new SecretMissing(`The file ${reference.file} is empty.`);
  return secret;
}

async function readSecret(file: string): Promise<string> {
  try {
    const found = await stat(file);
    // A device or a pipe might never end.
    if (!found.isFile()) throw new SecretMissing(`${file} is not a file.`);
    if (found.size > MAX_SECRET_BYTES) throw new SecretMissing(`The file ${file} is too big for a secret.`);
    const secret = await readFile(file, 'utf8');
    // No variable and no header can hold it, and Node's error of that quotes it, in a form that nobody would hide.
    if (secret.includes('\0')) throw new SecretMissing(`The file ${file} is not text.`);
    return secret;
  } catch (error) {
    if (error instanceof SecretMissing) throw error;
    throw new SecretMissing(`The file ${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

/** A reference in a manifest, with its place there. */
export interface PlacedSecret {
  path: string;
  reference: SecretReference;
}

/** The secrets without which the agent cannot run: those of tool servers that it can do without are not among them. */
export function requiredSecrets(manifest: AgentManifest): PlacedSecret[] {
  const { model } = manifest;
  const secrets = serverSecrets(manifest, true);
  return model?.apiKey === undefined ? secrets : [{ path: 'model.apiKey', reference: model.apiKey }, ...secrets];
}

/** Those without which it runs, but without some of its tools. */
export const optionalSecrets = (manifest: AgentManifest): PlacedSecret[] => serverSecrets(manifest, false);

function serverSecrets({ toolServers }: AgentManifest, required: boolean): PlacedSecret[] {
  return toolServers.flatMap((server, i) => {
    if (server.required !== required) return [];
    const [field, entries] = 'command' in server ? ['env', server.env] : ['headers', server.headers];
    return Object.entries(entries).flatMap(([name, value]) =>
      typeof value === 'string' ? [] : [{ path: `toolServers.${i}.${field}.${name}`, reference: value }],
    );
  });
}
