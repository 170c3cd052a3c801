import type { Pool } from 'pg';
import type { AgentKind } from '#domain';
import { BY_KEY, namedStatement, PolicyCache, rethrowUnavailable, type PolicyWatch } from '#platform';
import { NOTHING_ALLOWED, type Allowances } from './allowances.ts';
import type { Harnesses, ReadinessIssue } from './harness.ts';
import { agentManifestSchema, type AgentManifest } from './manifest.ts';
import { ReadinessCheck, type NotAllowedPart } from './readiness.ts';
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
  /** How many of its Runs, and of its organization's, may be executed at once; null: as many as there are slots. */
  maxRuns: number | null;
  organizationMaxRuns: number | null;
}

/** The most cached agents, so that a caller who asks for many cannot fill the memory. */
const MAX_ENTRIES = 10_000;

export interface AgentCatalogueOptions {
  pool: Pool;
  watch: PolicyWatch;
  harnesses: Harnesses;
  /** The variables, files and programs that manifests may name. Default: none. */
  allowances?: Allowances;
  /** Returns milliseconds of a monotonic clock. */
  now?: () => number;
}

/** The agents and their versions, as this process last read them. Reads throw DatabaseUnavailable. */
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
      // Misses are not cached, so a new agent is visible immediately.
      isKept: (agent) => agent !== null,
    });
  }

  /** Returns the agent in any state, as it was a moment ago (PolicyCache); null if it never existed. */
  find(agentId: string): Promise<Agent | null> {
    return this.agents.get(agentId);
  }

  /** Returns a version of an agent, null if there is none. It never changes, so it is read once. Throws ZodError. */
  async version(agentId: string, version: number): Promise<AgentManifest | null> {
    const key = `${agentId} ${version}`;
    const known = this.versions.get(key);
    if (known !== undefined) return known;
    const values = [agentId, version];
    const { rows } = await this.pool
      .query<{ manifest: unknown }>({ ...FIND_AGENT_VERSION, ...BY_KEY, values })
      .catch(rethrowUnavailable);
    if (rows[0] === undefined) return null;
    const manifest = agentManifestSchema.parse(rows[0].manifest);
    keep(this.versions, key, manifest);
    return manifest;
  }

  /**
   * Returns what the agent lacks to run now, at most 2 s old; empty if it can run (docs/spec/decisions.md#readiness).
   */
  readiness(manifest: AgentManifest): Promise<readonly ReadinessIssue[]> {
    return this.readinessCheck.of(manifest);
  }

  /** Returns what the manifest names although this installation does not allow it. */
  notAllowed(manifest: AgentManifest): Promise<NotAllowedPart[]> {
    return this.readinessCheck.notAllowed(manifest);
  }

  /** Returns what it lacks and can run without: optional tool servers whose secrets are missing. */
  warnings(manifest: AgentManifest): Promise<readonly ReadinessIssue[]> {
    return this.readinessCheck.warnings(manifest);
  }

  /** Returns why workers left out tools when they last read the lists of its tool servers. Throws DatabaseUnavailable. */
  toolWarnings(agentId: string, manifest: AgentManifest): Promise<readonly ReadinessIssue[]> {
    return findToolWarnings(this.pool, agentId, manifest);
  }

  private async readAgent(agentId: string): Promise<Agent | null> {
    const { rows } = await this.pool
      .query<Agent>({ ...FIND_AGENT, ...BY_KEY, values: [agentId] })
      .catch(rethrowUnavailable);
    return rows[0] ?? null;
  }
}

function keep<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  const [oldest] = cache.keys();
  if (cache.size >= MAX_ENTRIES && oldest !== undefined) cache.delete(oldest);
  cache.set(key, value);
}
