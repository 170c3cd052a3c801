import type { Pool } from 'pg';
import type { AgentKind } from '#domain';
import { namedStatement, throwAway } from '#platform';
import type { Harnesses } from './harness.ts';
import { agentManifestSchema, type AgentManifest } from './manifest.ts';

const FIND_AGENT = namedStatement(import.meta.dirname, 'find-agent.sql');
const FIND_AGENT_VERSION = namedStatement(import.meta.dirname, 'find-agent-version.sql');

export interface Agent {
  id: string;
  organizationId: string;
  ownerPersonId: string | null;
  name: string;
  description: string;
  kind: AgentKind;
  access: 'organization' | 'invited';
  published: boolean;
  apiEnabled: boolean;
  liveVersion: number | null;
  deleted: boolean;
}

/** Switching an agent off is seen everywhere within this time: below the 5 s that decisions allow a revocation. */
const FRESH_MS = 2_000;
/** So that a caller who asks for many cannot fill the memory. */
const MAX_ENTRIES = 10_000;

export interface AgentCatalogueOptions {
  pool: Pool;
  harnesses: Harnesses;
  /** Milliseconds of a clock that does not go back. */
  now?: () => number;
}

/** The agents and their versions, as this process last read them. Reads throw DatabaseAway. */
export class AgentCatalogue {
  private readonly pool: Pool;
  private readonly harnesses: Harnesses;
  private readonly now: () => number;
  private readonly agents = new Map<string, { agent: Promise<Agent | null>; readAt: number }>();
  private readonly versions = new Map<string, AgentManifest>();

  constructor({ pool, harnesses, now = () => performance.now() }: AgentCatalogueOptions) {
    this.pool = pool;
    this.harnesses = harnesses;
    this.now = now;
  }

  /** The agent, whatever its state, at most 2 s old; null when there never was one. */
  async find(agentId: string): Promise<Agent | null> {
    const known = this.agents.get(agentId);
    if (known !== undefined && this.now() - known.readAt < FRESH_MS) return known.agent;
    const agent = this.readAgent(agentId);
    this.agents.delete(agentId);
    keep(this.agents, agentId, { agent, readAt: this.now() });
    // Neither an absence nor a failure is worth remembering: the next one who asks looks again.
    const forget = (): void => {
      if (this.agents.get(agentId)?.agent === agent) this.agents.delete(agentId);
    };
    void agent.then((found) => found ?? forget(), forget);
    return agent;
  }

  /** A version of an agent, null when there is none. It never changes, so it is read once. Throws ZodError. */
  async version(agentId: string, version: number): Promise<AgentManifest | null> {
    const key = `${agentId} ${version}`;
    const known = this.versions.get(key);
    if (known !== undefined) return known;
    const values = [agentId, version];
    const { rows } = await this.pool.query<{ manifest: unknown }>({ ...FIND_AGENT_VERSION, values }).catch(throwAway);
    if (rows[0] === undefined) return null;
    const manifest = agentManifestSchema.parse(rows[0].manifest);
    keep(this.versions, key, manifest);
    return manifest;
  }

  /** Why the agent cannot run now, null when it can: `readiness_blocked` (decisions, section 2). */
  readiness(manifest: AgentManifest): string | null {
    const { name } = manifest.harness;
    const harness = this.harnesses.get(name);
    return harness === undefined ? `There is no harness ${JSON.stringify(name)}.` : harness.readiness(manifest);
  }

  private async readAgent(agentId: string): Promise<Agent | null> {
    const { rows } = await this.pool.query<Agent>({ ...FIND_AGENT, values: [agentId] }).catch(throwAway);
    return rows[0] ?? null;
  }
}

function keep<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  const [oldest] = cache.keys();
  if (cache.size >= MAX_ENTRIES && oldest !== undefined) cache.delete(oldest);
  cache.set(key, value);
}
