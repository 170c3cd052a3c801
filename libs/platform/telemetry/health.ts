import type { Pool, QueryConfig } from 'pg';
import { metrics } from './metrics.ts';
import type { PolicyWatch } from '../policy/policy-watch.ts';

/** What a process depends on. */
export interface HealthPart {
  /** As reasons name it: `PostgreSQL`. */
  name: string;
  /** Resolves true where it works; false, a throw and silence mean that it does not. */
  works: () => boolean | Promise<boolean>;
  /** What it means that it does not. */
  means: string;
  /** Told what was found. */
  found?: (works: boolean) => void;
}

/** What was found of one part. */
export interface PartState {
  works: boolean;
  /** Since when it was seen not to work, as ISO text; null where it does. */
  since: string | null;
  /** For people: what is wrong, since when, and what it means. Null where it works. */
  reason: string | null;
}

/** How long each may take to answer, milliseconds: a scrape of metrics has a second. */
export const HEALTH_LIMIT_MS = 700;

/** Looks at everything that a process depends on, all at once, and remembers since when what does not work does not. */
export class HealthCheck<Name extends string> {
  private readonly since = new Map<Name, string>();
  private looking: Promise<Record<Name, PartState>> | null = null;

  constructor(private readonly parts: Readonly<Record<Name, HealthPart>>) {}

  /** Who asks while it looks shares that: anybody may ask, and many at once would take the pool's connections. */
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

export const okOrAway = ({ works }: PartState): 'ok' | 'away' => (works ? 'ok' : 'away');

/**
 * PostgreSQL, on which every process depends. Where all connections of the pool are at work it is asked by the policy's, which looks each
 * second: a process that is busy is not to be taken for one whose database is away, and its requests sent to others that are as busy.
 */
export function databasePart(pool: Pool, policy: Pick<PolicyWatch, 'isTrusted'>, means: string): HealthPart {
  const works = async (): Promise<boolean> => {
    if (pool.idleCount === 0 && pool.totalCount >= pool.options.max) return policy.isTrusted;
    // It must not keep its connection for as long as a statement may take.
    const limited: QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: HEALTH_LIMIT_MS };
    await pool.query(limited);
    return true;
  };
  return { name: 'PostgreSQL does not answer', means, works, found: (up) => metrics.databaseUp.set(Number(up)) };
}

/** False where it throws or is silent. */
async function answerOf(works: HealthPart['works']): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<false>((resolve) => (timer = setTimeout(resolve, HEALTH_LIMIT_MS, false)));
  const asked = (async () => works())().catch(() => false);
  const answer = await Promise.race([asked, silence]);
  clearTimeout(timer);
  return answer;
}
