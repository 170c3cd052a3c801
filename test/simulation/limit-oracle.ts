import { must } from './stream-oracle.ts';
import type { Tables, Transaction, StoredWorkItem } from './tables.ts';

/** Looks whether concurrency limits hold, for each claim when it is stored. */
export class LimitOracle {
  /** How often a Run has begun to wait for a limit. */
  waits = 0;
  /** By `run attempt limit`: claims that were made under the lock of that limit, and so counted. */
  private readonly counted = new Set<string>();
  /** Since when Runs are limited, and for how long they were, since they are ready. */
  private readonly limitedSince = new Map<string, number>();
  private readonly limitedFor = new Map<string, { since: number; ms: number }>();

  constructor(
    private readonly tables: () => Tables,
    private readonly knowsNoLimit: (holder: string, id: string) => boolean,
  ) {}

  claimed(runId: string, before: StoredWorkItem | undefined, transaction: Transaction | null): void {
    const tables = this.tables();
    const row = tables.work.get(runId)!;
    const { agentId, organizationId } = row;
    const { checked = null, limits = [] } = transaction ?? {};
    const organizationRuns = tables.organizations.get(organizationId) ?? null;
    const agentRuns = tables.agents.get(agentId)?.runs ?? null;
    const isAgents = (other: StoredWorkItem): boolean => other.agentId === agentId;
    const isOrganizations = (other: StoredWorkItem): boolean => other.organizationId === organizationId;
    for (const [id, runs, seen, isOf] of [
      [organizationId, organizationRuns, checked?.organization, isOrganizations],
      [agentId, agentRuns, checked?.agent, isAgents],
    ] as const) {
      if (!limits.includes(id) || seen === undefined) {
        const isExcused = runs === null || this.knowsNoLimit(row.holder!, id);
        must(isExcused, `${runId} is claimed without a look at the limit of ${id}, which is ${runs}`);
        continue;
      }
      this.counted.add(`${runId} ${row.attempt} ${id}`);
      if (seen === null) continue;
      const count = this.countClaimed(id, isOf);
      must(count <= seen, `${count} Runs of ${id} are claimed, its limit is ${seen}`);
    }
    if (limits.includes(agentId) && checked?.agent !== null) this.checkTurn(before, 'agent', isAgents);
    if (limits.includes(organizationId) && checked?.organization !== null)
      this.checkTurn(before, 'organization', isOrganizations);
  }

  /** Who comes later does not pass those who wait for the same limit; who was claimed before may. */
  private checkTurn(
    before: StoredWorkItem | undefined,
    limit: StoredWorkItem['limitedBy'],
    isOf: (row: StoredWorkItem) => boolean,
  ): void {
    if (before?.limitedBy !== null || before.attempt > 0) return;
    for (const row of this.tables().work.values())
      must(
        row.state !== 'limited' || row.limitedBy !== limit || !isOf(row) || row.since >= before.since,
        `${before.runId} is claimed before ${row.runId}, which has waited longer for the limit of its ${limit}`,
      );
  }

  /** Those that did not count themselves are left out: there was no limit that their process knew. */
  private countClaimed(id: string, isOf: (row: StoredWorkItem) => boolean): number {
    let count = 0;
    for (const row of this.tables().work.values())
      if (row.state === 'leased' && isOf(row) && this.counted.has(`${row.runId} ${row.attempt} ${id}`)) count++;
    return count;
  }

  /** Queue time stands still while a Run waits for a limit: counted here, whatever its row says. */
  expired(before: StoredWorkItem): void {
    const { runId, since, queueMs, state } = before;
    must(state !== 'limited', `${runId} expires in the queue while it waits for a limit`);
    const limited = this.limitedFor.get(runId);
    const waited = this.tables().now - since - (limited?.since === since ? limited.ms : 0);
    must(waited > queueMs - 1, `${runId} expires after ${waited} ms in the queue, its limit is ${queueMs}`);
  }

  /** Work rows have changed. */
  note(): void {
    const { work, now } = this.tables();
    for (const [runId, { state, since }] of work) {
      const from = this.limitedSince.get(runId);
      if (state === 'limited') {
        if (from !== undefined) continue;
        this.waits++;
        this.limitedSince.set(runId, now);
      } else if (from !== undefined) {
        this.limitedSince.delete(runId);
        const before = this.limitedFor.get(runId);
        const ms = (before?.since === since ? before.ms : 0) + now - from;
        this.limitedFor.set(runId, { since, ms });
      }
    }
  }
}
