import { createHash } from 'node:crypto';
import type { ModelChoice } from './model-settings.ts';
import { quirksOf, type Quirks } from './server-profiles.ts';

/** Versions of agents whose servers are remembered. */
const MAX_REMEMBERED = 1_000;

/** What is known of the server of one call. */
export interface Server {
  model: ModelChoice;
  quirks: Quirks;
  /** Remembers quirks that the server itself has shown. */
  learn: (quirks: Partial<Quirks>) => void;
}

/** Returns what is known of the model's server without having asked it. It remembers nothing. */
export function serverOf(model: ModelChoice): Server {
  return { model, quirks: quirksOf(model), learn: () => undefined };
}

/**
 * What servers have refused by name, for each agent and everything that its manifest says of its model. In memory: another
 * process learns it by one refused request.
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
