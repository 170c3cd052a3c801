import { join } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker, type MessagePort } from 'node:worker_threads';
import { namedStatement, poolSettings, type DatabaseOptions, type Logger } from '#platform';
import { HEARTBEAT_FOR_WORKER } from '#run-queue';
import { lookEveryMs, type LeaseRenewer } from './lease-keeper.ts';
import { keyOf, type HeldLease, type LeaseReport, type LeaseStatements } from './lease-renewals-worker.mjs';

const THREAD = join(import.meta.dirname, 'lease-thread-worker.mjs');

/** The statements of the lease thread. */
export const LEASE_STATEMENTS: LeaseStatements = {
  renew: namedStatement(import.meta.dirname, 'renew-leases.sql'),
  check: namedStatement(import.meta.dirname, 'find-held-claims.sql'),
  heartbeat: { text: HEARTBEAT_FOR_WORKER },
};

/** The second connection takes over when the first one hangs. */
const CONNECTIONS = 2;
/** Limits of the JavaScript heap, MiB. The thread needs 5 for a driver and some hundred claims. */
const HEAP = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 2 };
/** The least time between two starts, if the thread exits unexpectedly. */
const RESTART_MS = 1_000;
/** A thread that does not end within this time is terminated, because PostgreSQL may be silent. */
const GOODBYE_MS = 1_000;

export interface LeaseThreadOptions {
  database: Pick<DatabaseOptions, 'url' | 'applicationName'>;
  /** The worker process, as claims and the table `workers` name it. */
  holder: string;
  leaseMs: number;
  logger: Logger;
}

/**
 * Renews leases in a thread with its own connection, so that they do not depend on a busy main thread. The thread stops
 * renewing when the main thread has not beaten for longer than a lease. A thread that exits is restarted. Until
 * then nothing is renewed, and the keeper stops the work in time.
 */
export class LeaseThread implements LeaseRenewer {
  private readonly beats = new BigInt64Array(new SharedArrayBuffer(8));
  /** The claims, for a thread that is started again. */
  private readonly held = new Map<string, HeldLease>();
  private readonly aheadMs = clockDifferenceMs();
  private thread: Worker | null = null;
  private port: MessagePort | null = null;
  private arrived: LeaseReport[] = [];
  private onReport = (): void => undefined;
  private restart: NodeJS.Timeout | undefined;

  constructor(private readonly options: LeaseThreadOptions) {}

  start(onReport: () => void): void {
    this.onReport = onReport;
    this.beat();
    this.startThread();
  }

  private startThread(): void {
    if (this.thread !== null) return;
    const { port1, port2 } = new MessageChannel();
    const { database, holder, leaseMs } = this.options;
    const tickMs = lookEveryMs(leaseMs);
    const startedAt = performance.now();
    const thread = new Worker(THREAD, {
      workerData: {
        ...{ port: port2, beats: this.beats, holder, leaseMs, tickMs, statements: LEASE_STATEMENTS },
        connection: connectionSettings(database),
        leases: [...this.held.values()],
      },
      transferList: [port2],
      resourceLimits: HEAP,
      // PostgreSQL's driver reads its variables; flags and preloads are for the main thread.
      ...{ env: { ...process.env, NODE_OPTIONS: '' }, execArgv: [] },
    });
    thread.unref();
    port1.on('message', (report: LeaseReport) => {
      this.arrived.push(report);
      this.onReport();
    });
    port1.unref();
    thread.once('error', (error) => this.options.logger.error({ err: error }, 'lease thread crashed'));
    thread.once('exit', () => this.onExit(thread, startedAt));
    this.thread = thread;
    this.port = port1;
  }

  async stop(): Promise<void> {
    const { thread } = this;
    this.thread = null;
    clearTimeout(this.restart);
    if (thread === null) return;
    const exited = new Promise((resolve) => thread.once('exit', resolve));
    this.port?.postMessage({ type: 'stop' });
    // Keeps the event loop alive until the thread has ended.
    const cutOff = setTimeout(() => void thread.terminate(), GOODBYE_MS);
    await exited;
    clearTimeout(cutOff);
    this.port?.close();
  }

  beat(): void {
    Atomics.store(this.beats, 0, process.hrtime.bigint());
  }

  hold(claim: HeldLease): void {
    const lease = { ...claim, leaseUntil: claim.leaseUntil + this.aheadMs };
    this.held.set(keyOf(lease), lease);
    this.port?.postMessage({ type: 'hold', lease });
  }

  release({ runId, attempt }: Pick<HeldLease, 'runId' | 'attempt'>): void {
    const lease = { runId, attempt };
    if (this.held.delete(keyOf(lease))) this.port?.postMessage({ type: 'release', lease });
  }

  take(): LeaseReport[] {
    const reports = this.arrived;
    this.arrived = [];
    // After a stall, message events would come only after the work that depends on them.
    for (let next = this.receive(); next !== undefined; next = this.receive()) reports.push(next);
    return reports.map((report) => {
      const isRenewal = 'renewedAt' in report && report.renewedAt !== null;
      return isRenewal ? { ...report, renewedAt: report.renewedAt! - this.aheadMs } : report;
    });
  }

  private receive(): LeaseReport | undefined {
    return this.port === null ? undefined : (receiveMessageOnPort(this.port)?.message as LeaseReport | undefined);
  }

  private onExit(thread: Worker, startedAt: number): void {
    if (this.thread !== thread) return;
    this.thread = null;
    const ms = Math.max(0, startedAt + RESTART_MS - performance.now());
    this.options.logger.error({ claims: this.held.size, inMs: Math.round(ms) }, 'lease thread exited; restarting it');
    this.restart = setTimeout(() => this.startThread(), ms).unref();
  }
}

/** The options of the main pool (database.ts), without functions, because they cannot be sent to a thread. */
function connectionSettings(database: LeaseThreadOptions['database']): object {
  const { types: _, onConnect: __, ...settings } = poolSettings({ ...database, maxConnections: CONNECTIONS });
  return settings;
}

/**
 * Returns how far the clock that threads share is ahead of `performance.now()`. Never less than the truth, so that leases end
 * early rather than late. Takes the least of some samples, because the process may be paused within one.
 */
function clockDifferenceMs(): number {
  const samples = Array.from({ length: 5 }, () => -performance.now() + Number(process.hrtime.bigint()) / 1e6);
  return Math.min(...samples);
}
