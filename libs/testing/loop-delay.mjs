// Preloaded into a process under test (NODE_OPTIONS=--import …): measures how late its timers are. At each SIGUSR2 it prints
// the delays since the last one. See loop-delay.ts.
import { isMainThread } from 'node:worker_threads';
import { mainThreadUse } from './main-thread.mjs';

const INTERVAL_MS = 5;

/** Returns the delay that the machine adds: the time for which the kernel ran others, and the extra time of page faults. Milliseconds. */
function machineMs() {
  const { waitedMs, extraMs } = mainThreadUse();
  return waitedMs + extraMs;
}

let last;
let own = [];
let all = [];

function sample() {
  const now = { at: performance.now(), machine: machineMs() };
  const delay = Math.max(0, now.at - last.at - INTERVAL_MS);
  all.push(delay);
  own.push(Math.max(0, delay - (now.machine - last.machine)));
  last = now;
}

/** The 99th percentile and the largest. */
function describe(delays) {
  const sorted = delays.toSorted((a, b) => a - b);
  return [sorted[Math.ceil(sorted.length * 0.99) - 1], sorted.at(-1)].map((ms) => ms.toFixed(1)).join(' ');
}

// Threads load it too.
if (isMainThread) {
  last = { at: performance.now(), machine: machineMs() };
  setInterval(sample, INTERVAL_MS).unref();
  let reports = 0;
  process.on('SIGUSR2', () => {
    sample();
    process.stdout.write(`loop ${++reports}: ${all.length} ${describe(own)} ${describe(all)}\n`);
    [own, all] = [[], []];
  });
}
