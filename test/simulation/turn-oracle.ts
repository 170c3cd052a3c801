import type { RunJob } from '#event-store';
import { isClaimable } from './limit-statements.ts';
import { must } from './stream-oracle.ts';
import type { Tables, StoredWorkItem } from './tables.ts';

/**
 * The longest time for which an organization that goes first may be passed, milliseconds. The dispatcher may not have looked yet
 * (25 ms while jobs wait, 100 ms after work), or its statements and its enqueueing are under way. Or a worker has refused a job for a
 * concurrency limit, and the dispatcher takes it for queued for 250 ms more.
 *
 * The time begins when the organization has a Run that its limits allow, and no worker has one of its jobs. It begins again
 * after a worker took a job of it. The claim may then be refused, or the Run may have expired. Either way, the dispatcher has to
 * look once more before the next Run goes ahead.
 */
const PASSED_FOR_MS = 500;
/**
 * The longest time for which an organization may be far behind, milliseconds. The dispatcher counts slots once a second if it
 * knows of no backlog, in a look up to 100 ms later, which puts these organizations ahead. 150 ms are for its statements.
 */
const FAR_BEHIND_FOR_MS = 1_250;
/** By this time there is a leader, and it looks often. */
const SETTLED_AT_MS = 2_000;
/** The slot-seconds of the whole simulation are those of the last minute until then. */
const USE_KNOWN_UNTIL_MS = 60_000;
/** Another has used so many times as much, and so much more. The dispatcher's samples of short Runs are estimates. */
const FAR_BEHIND = 2.5;
const INEXACT_MS = 1_500;
/** A difference of a Run is chance. The dispatcher expects Runs to take this many times the mean age of those under way. */
const EXPECTED_AGES = 2;

/**
 * Checks in a simulation without faults that the next free slot goes to an organization that has none, and then to one that has
 * used far fewer slot-seconds. After some time only jobs that workers have taken already may be claimed before it.
 */
export class TurnOracle {
  /** The number of times that an organization without a slot, or one far behind, had to wait. */
  waits = 0;
  waitsFarBehind = 0;
  /** The time since which each organization has had a Run that its limits allow, and no job that a worker has taken. */
  private readonly passedSince = new Map<string, number>();
  /** The time since which it has also had no slot, and since which it has had ready work and been far behind. */
  private readonly waitingSince = new Map<string, number>();
  private readonly farBehindSince = new Map<string, number>();
  /** The slots of each organization since the last note, and its slot-milliseconds until then. */
  private slots = new Map<string, number>();
  /** The organization of each Run that had a work item. A worker may take a job whose Run has expired and has none any more. */
  private readonly organizations = new Map<string, string>();
  private readonly usedMs = new Map<string, number>();
  private notedAt = 0;
  /** The times since which the Runs under way had their slots after the last note, and their mean age just before this one. */
  private claimedAt: number[] = [];
  private meanAgeMs = 0;

  constructor(
    private readonly tables: () => Tables,
    private readonly now: () => number,
    private readonly isTaken: (row: StoredWorkItem) => boolean,
    /** The limit of an organization that has none of its own. */
    private readonly cap: () => number | null,
  ) {}

  /** Call it after each change of work rows. */
  note(): void {
    this.countUse();
    const tables = this.tables();
    const cap = this.cap();
    for (const { runId, organizationId } of tables.work.values()) this.organizations.set(runId, organizationId);
    const ready = [...tables.work.values()].filter(({ state }) => state === 'ready');
    const wanting = new Set(ready.map(organizationOf));
    const served = new Set(ready.filter(this.isTaken).map(organizationOf));
    const claimable = ready.filter((row) => !served.has(row.organizationId) && isClaimable(tables, row, cap));
    const passed = new Set(claimable.map(organizationOf));
    this.keep(this.passedSince, passed, () => true);
    this.waits += this.keep(this.waitingSince, passed, (id) => !this.slots.has(id));
    const most = Math.max(0, ...[...wanting].map((id) => this.usedBy(id)));
    this.waitsFarBehind += this.keep(this.farBehindSince, wanting, (id) => this.isFarBehind(id, most));
  }

  /**
   * Call it when a worker takes a job. Throws if its Run can be claimed and another organization should have had the slot.
   * Counts as a turn of the organization even if the Run has ended since.
   */
  taken({ runId }: RunJob): void {
    if (this.now() < SETTLED_AT_MS) return;
    this.note();
    const id = this.organizations.get(runId) ?? '';
    const isReady = this.tables().work.get(runId)?.state === 'ready';
    if (isReady && this.slots.has(id)) this.mustPassNone(id);
    this.passedSince.delete(id);
    this.waitingSince.delete(id);
  }

  /** The organization has a slot and gets another. */
  private mustPassNone(id: string): void {
    const ms = (since: Map<string, number>, other: string): number => this.now() - (since.get(other) ?? this.now());
    for (const other of this.passedSince.keys()) {
      const withoutMs = ms(this.waitingSince, other);
      must(
        withoutMs <= PASSED_FOR_MS,
        `${id} has a slot and gets another, ${other} has had none for ${Math.round(withoutMs)} ms`,
      );
      if (ms(this.passedSince, other) <= PASSED_FOR_MS || this.now() > USE_KNOWN_UNTIL_MS) continue;
      const behindMs = ms(this.farBehindSince, other);
      const isPassed = behindMs > FAR_BEHIND_FOR_MS && this.isFarBehind(other, this.usedBy(id));
      must(!isPassed, `${id} gets another slot, ${other} has been far behind for ${Math.round(behindMs)} ms`);
    }
  }

  /** Keeps since when it holds for each organization with ready work. Returns the number of those for which it began. */
  private keep(since: Map<string, number>, wanting: ReadonlySet<string>, holds: (id: string) => boolean): number {
    for (const id of since.keys()) if (!wanting.has(id) || !holds(id)) since.delete(id);
    const begun = [...wanting].filter((id) => !since.has(id) && holds(id));
    for (const id of begun) since.set(id, this.now());
    return begun.length;
  }

  private countUse(): void {
    const ms = this.now() - this.notedAt;
    this.notedAt = this.now();
    for (const [id, slots] of this.slots) this.usedMs.set(id, this.usedBy(id) + slots * ms);
    const { work, now } = this.tables();
    const leased = [...work.values()].filter(({ state }) => state === 'leased');
    const ages = this.claimedAt.map((since) => now - since);
    this.meanAgeMs = ages.reduce((sum, age) => sum + age, 0) / Math.max(1, ages.length);
    this.claimedAt = leased.map(({ since }) => since);
    this.slots = new Map();
    for (const { organizationId: id } of leased) this.slots.set(id, (this.slots.get(id) ?? 0) + 1);
  }

  private usedBy(id: string): number {
    return this.usedMs.get(id) ?? 0;
  }

  private isFarBehind(id: string, mostMs: number): boolean {
    const chanceMs = INEXACT_MS + EXPECTED_AGES * this.meanAgeMs;
    return FAR_BEHIND * (this.usedBy(id) + chanceMs) < mostMs;
  }
}

const organizationOf = ({ organizationId }: StoredWorkItem): string => organizationId;
