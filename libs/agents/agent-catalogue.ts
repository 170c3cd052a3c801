import type { Pool } from 'pg';
import type { AgentKind } from '#domain';
import { namedStatement, PolicyCache, throwAway, type PolicyWatch } from '#platform';
import { NOTHING_ALLOWED, type Allowances } from './allowances.ts';
import type { Harnesses, Lack } from './harness.ts';
import { agentManifestSchema, type AgentManifest } from './manifest.ts';
import { ReadinessCheck } from './readiness.ts';
import { findToolWarnings } from './tool-warnings.ts';

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
  /** How many of its Runs, and of its organization's, are executed at once; null: as many as there are slots. */
  maxRuns: number | null;
  organizationMaxRuns: number | null;
}

/** So that a caller who asks for many cannot fill the memory. */
const MAX_ENTRIES = 10_000;

/** By key: one that takes so long is on a connection that nobody answers any more. Milliseconds. */
const LIMIT = { query_timeout: 5_000 };

export interface AgentCatalogueOptions {
  pool: Pool;
  watch: PolicyWatch;
  harnesses: Harnesses;
  /** The variables, files and programs that manifests may name. Default: none. */
  allowances?: Allowances;
  /** Milliseconds of a clock that does not go back. */
  now?: () => number;
}

/** The agents and their versions, as this process last read them. Reads throw DatabaseAway. */
export class AgentCatalogue {
  private readonly pool: Pool;
  private readonly readinessCheck: ReadinessCheck;
  private readonly agents: PolicyCache<Agent | null>;
  private readonly versions = new Map<string, AgentManifest>();

  constructor(options: AgentCatalogueOptions) {
    const { pool, watch, harnesses, allowances = NOTHING_ALLOWED, now = () => performance.now() } = options;
    this.pool = pool;
    this.readinessCheck = new ReadinessCheck({ harnesses, allowances, now });
    this.agents = new PolicyCache<Agent | null>({
      watch,
      read: (agentId) => this.readAgent(agentId),
      maxEntries: MAX_ENTRIES,
      // That there is none is not: a new agent is there at once, and need not be told of.
      isKept: (agent) => agent !== null,
    });
  }

  /** The agent, whatever its state, as it was a moment ago (PolicyCache); null when there never was one. */
  find(agentId: string): Promise<Agent | null> {
    return this.agents.get(agentId);
  }

  /** A version of an agent, null when there is none. It never changes, so it is read once. Throws ZodError. */
  async version(agentId: string, version: number): Promise<AgentManifest | null> {
    const key = `${agentId} ${version}`;
    const known = this.versions.get(key);
    if (known !== undefined) return known;
    const values = [agentId, version];
    const { rows } = await this.pool
      .query<{ manifest: unknown }>({ ...FIND_AGENT_VERSION, ...LIMIT, values })
      .catch(throwAway);
    if (rows[0] === undefined) return null;
    const manifest = agentManifestSchema.parse(rows[0].manifest);
    keep(this.versions, key, manifest);
    return manifest;
  }

  /** What the agent lacks to run now, at most 2 s old; nothing when it can: `readiness_blocked` (decisions, section 2). */
  readiness(manifest: AgentManifest): Promise<readonly Lack[]> {
    return this.readinessCheck.of(manifest);
  }

  /** What it lacks now and can do without: optional tool servers whose secrets are missing. */
  warnings(manifest: AgentManifest): Promise<readonly Lack[]> {
    return this.readinessCheck.warnings(manifest);
  }

  /** Which parts of the lists of its tool servers workers left out when they last read them. Throws DatabaseAway. */
  toolWarnings(agentId: string, manifest: AgentManifest): Promise<readonly Lack[]> {
    return findToolWarnings(this.pool, agentId, manifest);
  }

  private async readAgent(agentId: string): Promise<Agent | null> {
    const { rows } = await this.pool.query<Agent>({ ...FIND_AGENT, ...LIMIT, values: [agentId] }).catch(throwAway);
    return rows[0] ?? null;
  }
}

function keep<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  const [oldest] = cache.keys();
  if (cache.size >= MAX_ENTRIES && oldest !== undefined) cache.delete(oldest);
  cache.set(key, value);
}
