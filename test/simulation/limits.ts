import { agentManifestSchema, type AgentCatalogue } from '#agents';
import { DatabaseUnavailable } from '#platform';
import type { Random } from '../support/random.ts';
import type { Faults } from './faults.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';
import type { Tables } from './tables.ts';

/** How old what a process knows of a limit may be (PolicyCache). */
const KNOWN_FOR_MS = 2_500;
/** A claim is sent for 2 s, and may be so long under way; longer where its process was stopped or cut off meanwhile. */
const UNDER_WAY_MS = 8_000;
const STOPPED_MS = 15_000;
const AGENTS_EACH = 2;
/** Few, so that they are reached; none for most. */
const SIZES = [null, null, 1, 1, 2, 3];

/** Gives each organization its agents, and in half of the simulations some of both a limit. */
export function drawLimits(random: Random, tables: Tables, organizationIds: readonly string[]): void {
  const isLimited = random.below(2) === 0;
  const size = (): number | null => (isLimited ? random.pick(SIZES) : null);
  for (const organizationId of organizationIds) {
    tables.setOrganization(organizationId, size());
    for (let i = 1; i <= AGENTS_EACH; i++) tables.setAgent(`${organizationId}-A${i}`, organizationId, size());
  }
}

/** An operator's `spool org limit`, or another live version of an agent. Answers what it did, in words. */
export function changeALimit(random: Random, tables: Tables): string {
  const size = random.pick(SIZES);
  const id = random.pick([...tables.organizations.keys(), ...tables.agents.keys()]);
  const agent = tables.agents.get(id);
  if (agent === undefined) tables.setOrganization(id, size);
  else tables.setAgent(id, agent.organizationId, size);
  return `the limit of ${id} is ${size}`;
}

/** Who was told lately that there is no limit. */
export class Ignorance {
  private readonly toldAt = new Map<string, number>();

  constructor(private readonly scheduler: Scheduler) {}

  note(process: SimulatedProcess, id: string, limit: number | null): void {
    if (limit === null) this.toldAt.set(`${process.name} ${id}`, this.scheduler.now);
  }

  /** Whether a claim of that process that is stored now may rest on it. */
  excuses(process: SimulatedProcess, id: string): boolean {
    const toldAt = this.toldAt.get(`${process.name} ${id}`) ?? -Infinity;
    const wasStopped = process.pausedUntil > toldAt || process.cutOffUntil > toldAt;
    return toldAt > this.scheduler.now - UNDER_WAY_MS - (wasStopped ? STOPPED_MS : 0);
  }
}

interface Known {
  maxRuns: number | null;
  organizationMaxRuns: number | null;
  until: number;
}

export interface CatalogueOptions {
  scheduler: Scheduler;
  faults: Faults;
  tables: Tables;
  ignorance: Ignorance;
}

/** The agents as one process knows them. */
export function simulatedCatalogue(process: SimulatedProcess, options: CatalogueOptions): AgentCatalogue {
  const { scheduler, faults, tables, ignorance } = options;
  const knownOf = new Map<string, Known>();
  const read = (agentId: string): Known => {
    if (process.cutOffUntil > scheduler.now) throw new DatabaseUnavailable(new Error('cut off'));
    const { runs, organizationId } = tables.agents.get(agentId)!;
    const organizationMaxRuns = tables.organizations.get(organizationId) ?? null;
    const known = { maxRuns: runs, organizationMaxRuns, until: scheduler.now + faults.between(0, KNOWN_FOR_MS) };
    knownOf.set(agentId, known);
    return known;
  };
  const find = async (agentId: string): Promise<Known> => {
    const last = knownOf.get(agentId);
    const known = last !== undefined && last.until > scheduler.now ? last : read(agentId);
    ignorance.note(process, agentId, known.maxRuns);
    ignorance.note(process, tables.agents.get(agentId)!.organizationId, known.organizationMaxRuns);
    return known;
  };
  return { find, version: async () => MANIFEST, readiness: async () => [] } as unknown as AgentCatalogue;
}

const MANIFEST = agentManifestSchema.parse({ name: 'Simulated', harness: { name: 'simulated' } });
