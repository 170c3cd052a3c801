import { createHash } from 'node:crypto';
import type { ModelChoice } from './model-settings.ts';
import { quirksOf, type Quirks } from './server-profiles.ts';

/** The most entries: one for each agent and model setting. */
const MAX_REMEMBERED = 1_000;

/** What is known about the server of one call. */
export interface Server {
  model: ModelChoice;
  quirks: Quirks;
  /** Remembers quirks that the server has shown by its refusals. */
  learn: (quirks: Partial<Quirks>) => void;
}

/** Returns what is known about the model's server before any call. Its `learn` does nothing. */
export function serverOf(model: ModelChoice): Server {
  return { model, quirks: quirksOf(model), learn: () => undefined };
}

/**
 * Remembers the fields that servers refused, for each agent and its `model` in the manifest. In memory only: another process
 * learns them from its own refused requests.
 */
export class LearnedQuirks {
  private readonly known = new Map<string, Partial<Quirks>>();

  serverOf(agentId: string, model: ModelChoice): Server {
    const key = createHash('sha256')
      .update(JSON.stringify([agentId, model]))
      .digest('base64');
    return {
      model,
      quirks: quirksOf(model, this.known.get(key)),
      learn: (quirks) => this.add(key, { ...this.known.get(key), ...quirks }),
    };
  }

  private add(key: string, quirks: Partial<Quirks>): void {
    this.known.delete(key);
    this.known.set(key, quirks);
    const [oldest] = this.known.keys();
    if (this.known.size > MAX_REMEMBERED && oldest !== undefined) this.known.delete(oldest);
  }
}
