/**
 * Renews leases. It is not TypeScript, so that one file runs in the lease thread from the sources and from dist/
 * (lease-thread-worker.mjs), and on the simulated clock of test/simulation.
 */

/** How often it reads which claims still hold: an interrupt stops work within 2 s, even if its wake-up was lost. */
const CHECK_EVERY_MS = 1_000;
/** After this silence of the main thread, it sends the worker's heartbeat instead. */
const STALLED_AFTER_MS = 1_000;
const HEARTBEAT_EVERY_MS = 3_000;

/** The claims of one worker, renewed by one statement every third of a lease. See the types beside this file. */
export class LeaseRenewals {
  #options;
  #held = new Map();
  #nextRenewalAt = 0;
  #nextCheckAt = 0;
  #nextHeartbeatAt = 0;

  constructor(options) {
    this.#options = options;
  }

  hold(lease) {
    this.#held.set(keyOf(lease), lease);
    // The claim may be old, if the main thread was stalled when the response came.
    this.#nextRenewalAt = Math.min(this.#nextRenewalAt, lease.leaseUntil - (2 / 3) * this.#options.leaseMs);
  }

  release(lease) {
    this.#held.delete(keyOf(lease));
  }

  tick() {
    const { leaseMs, now, beatAt } = this.#options;
    const at = now();
    const silentMs = at - beatAt();
    // The main thread may never continue. If it does, it stops all work first.
    if (silentMs > leaseMs) return;
    if (silentMs > STALLED_AFTER_MS && at >= this.#nextHeartbeatAt) this.#sendHeartbeat(at);
    const renews = at >= this.#nextRenewalAt;
    if (!renews && at < this.#nextCheckAt) return;
    this.#nextCheckAt = at + CHECK_EVERY_MS;
    if (renews) this.#nextRenewalAt = at + leaseMs / 3;
    if (this.#held.size > 0) void (renews ? this.#renew(at) : this.#check());
  }

  async #renew(sentAt) {
    const { holder, leaseMs, statements, query, report } = this.#options;
    const leases = [...this.#held.values()];
    const runIds = leases.map(({ runId }) => runId);
    const attempts = leases.map(({ attempt }) => attempt);
    try {
      // A hanging connection is abandoned after a third of the lease, and the next try uses another one.
      const values = [holder, runIds, attempts, leaseMs];
      const { rows } = await query({ ...statements.renew, values, query_timeout: leaseMs / 3 });
      this.#compare(leases, rows, sentAt);
    } catch (error) {
      this.#nextRenewalAt = 0;
      report({ failed: String(error?.message ?? error), claims: leases.length });
    }
  }

  async #check() {
    const { holder, statements, query } = this.#options;
    const leases = [...this.#held.values()];
    try {
      const { rows } = await query({ ...statements.check, values: [holder], query_timeout: CHECK_EVERY_MS });
      this.#compare(leases, rows, null);
    } catch {
      // A failed read says nothing about the claims. The leases decide.
    }
  }

  #compare(leases, rows, renewedAt) {
    const { report } = this.#options;
    const holding = new Set(rows.map(keyOf));
    const kept = [];
    const gone = [];
    for (const lease of leases) (holding.has(keyOf(lease)) ? kept : gone).push(keyOf(lease));
    for (const key of gone) this.#held.delete(key);
    if (renewedAt !== null || gone.length > 0) report({ kept, gone, renewedAt });
  }

  #sendHeartbeat(at) {
    const { holder, statements, query } = this.#options;
    this.#nextHeartbeatAt = at + HEARTBEAT_EVERY_MS;
    // The next heartbeat is due before others consider the worker dead.
    query({ ...statements.heartbeat, values: [holder], query_timeout: HEARTBEAT_EVERY_MS }).catch(() => undefined);
  }
}

/** Names a claim in reports: its Run and its attempt. */
export function keyOf({ runId, attempt }) {
  return `${runId} ${attempt}`;
}
