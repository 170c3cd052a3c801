import type { Pool, QueryConfig } from 'pg';
import { metrics } from './metrics.ts';
import type { PolicyWatch } from '../policy/policy-watch.ts';

/** A dependency of a process. */
export interface HealthPart {
  /** The start of its reason: `PostgreSQL does not answer`. */
  name: string;
  /** Returns whether it works. A throw or a timeout counts as false. */
  works: () => boolean | Promise<boolean>;
  /** The consequence of a failure. */
  means: string;
  /** Called with the result of each probe. */
  found?: (works: boolean) => void;
}

/** The result of the probe of one part. */
export interface PartState {
  works: boolean;
  /** The time of the first failed probe, as ISO text; null if the part works. */
  since: string | null;
  /** For people: the failure, its start and its consequence; null if the part works. */
  reason: string | null;
}

/** The timeout of each probe, milliseconds. A scrape of metrics must end within a second. */
export const HEALTH_LIMIT_MS = 700;

/** Probes all dependencies in parallel and records when each one started failing. */
export class HealthCheck<Name extends string> {
  private readonly since = new Map<Name, string>();
  private looking: Promise<Record<Name, PartState>> | null = null;

  constructor(private readonly parts: Readonly<Record<Name, HealthPart>>) {}

  /** Probes all parts. Concurrent callers share one probe, so that they cannot use up the connections of the pool. */
  look(): Promise<Record<Name, PartState>> {
    this.looking ??= this.lookAtAll().finally(() => (this.looking = null));
    return this.looking;
  }

  private async lookAtAll(): Promise<Record<Name, PartState>> {
    const names = Object.keys(this.parts) as Name[];
    const states = await Promise.all(names.map(async (name) => [name, await this.lookAt(name)] as const));
    return Object.fromEntries(states) as Record<Name, PartState>;
  }

  private async lookAt(key: Name): Promise<PartState> {
    const { name, works, means, found = () => undefined } = this.parts[key];
    const answer = await answerOf(works);
    found(answer);
    if (answer) {
      this.since.delete(key);
      return { works: true, since: null, reason: null };
    }
    const since = this.since.get(key) ?? new Date().toISOString();
    this.since.set(key, since);
    return { works: false, since, reason: `${name} (since ${since}): ${means}` };
  }
}

export const partStatus = ({ works }: PartState): 'ok' | 'away' => (works ? 'ok' : 'away');

/**
 * Probes PostgreSQL, on which every process depends. If all connections of the pool are in use, trusts the policy watch, which
 * looks once a second. So a busy process does not count as one without a database, which would send its requests to other busy
 * processes.
 */
export function databasePart(pool: Pool, policy: Pick<PolicyWatch, 'isTrusted'>, means: string): HealthPart {
  const works = async (): Promise<boolean> => {
    if (pool.idleCount === 0 && pool.totalCount >= pool.options.max) return policy.isTrusted;
    // A probe must not keep its connection for the whole statement timeout.
    const limited: QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: HEALTH_LIMIT_MS };
    await pool.query(limited);
    return true;
  };
  return { name: 'PostgreSQL does not answer', means, works, found: (up) => metrics.databaseUp.set(Number(up)) };
}

/** Returns false for a throw or a timeout. */
async function answerOf(works: HealthPart['works']): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<false>((resolve) => (timer = setTimeout(resolve, HEALTH_LIMIT_MS, false)));
  const asked = (async () => works())().catch(() => false);
  const answer = await Promise.race([asked, silence]);
  clearTimeout(timer);
  return answer;
}
