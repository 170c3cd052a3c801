/**
 * The lease thread (lease-thread.ts): hosts LeaseRenewals with its own connection and clock. The build bundles it into
 * one file, because the thread must start fast and stay small.
 */
import { workerData } from 'node:worker_threads';
import pg from 'pg';
import { LeaseRenewals } from './lease-renewals-worker.mjs';

const { port, beats, connection, tickMs, leases, ...options } = workerData;

const pool = new pg.Pool(connection);
const ignore = () => undefined;
// The failing statement reports a broken connection.
pool.on('error', ignore);
pool.on('connect', (client) => client.on('error', ignore));

const renewals = new LeaseRenewals({
  ...options,
  query: (statement) => pool.query(statement),
  // Both threads read the same clock here; `performance.now()` begins at 0 in each.
  now: () => Number(process.hrtime.bigint()) / 1e6,
  beatAt: () => Number(Atomics.load(beats, 0)) / 1e6,
  report: (report) => port.postMessage(report),
});
leases.forEach((lease) => renewals.hold(lease));
const ticking = setInterval(() => renewals.tick(), tickMs);

port.on('message', ({ type, lease }) => {
  if (type === 'hold') renewals.hold(lease);
  else if (type === 'release') renewals.release(lease);
  else if (type === 'stop') stop();
  else throw new Error(`Unknown message: ${type}`);
});

function stop() {
  clearInterval(ticking);
  port.close();
  pool.end().catch(ignore);
}
