import type { AdminClient } from './admin-client.ts';
import { findService, type Env } from './service-address.ts';

/** Where what is asked for is done: by the service, or with `--local` by the database directly. Throws CommandError. */
export async function openClient(env: Env, isLocal: boolean, note: (text: string) => void): Promise<AdminClient> {
  if (isLocal) {
    const { openLocal } = await import('./local-database.ts');
    return openLocal(env);
  }
  const service = await findService(env);
  const { HttpClient } = await import('./http-client.ts');
  return new HttpClient(service, note);
}
