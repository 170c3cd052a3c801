/**
 * Measures what the main thread of this process has used. Plain JavaScript, because loop-delay.mjs loads it into
 * processes under test; main-thread.d.mts has the types.
 */
import { readFileSync } from 'node:fs';

/** The longest usual page fault, where the processor translates the addresses of a virtual machine. Milliseconds. */
const USUAL_FAULT_MS = 0.001;

const PAGE_BYTES = 4096;
const PAGES = 1024;
/** More than glibc ever takes from memory that it used before, so that each page is new. */
const NEW_MEMORY_BYTES = 33 * 1024 * 1024;
const TRIES = 5;

const TASK = `/proc/self/task/${process.pid}`;

/** Reads the counters. On Linux they leave out the threads that compile code and collect garbage: these do not stop the loop. */
function read() {
  try {
    const [cpuNs, waitedNs] = readFileSync(`${TASK}/schedstat`, 'utf8').split(' ').map(Number);
    const stat = readFileSync(`${TASK}/stat`, 'utf8');
    // The name is in parentheses and may contain any character. Page faults are the field 10, and the state after the name is 3.
    const faults = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[7]);
    return { cpuMs: cpuNs / 1e6, waitedMs: waitedNs / 1e6, faults };
  } catch {
    const { user, system } = process.cpuUsage();
    return { cpuMs: (user + system) / 1_000, waitedMs: 0, faults: 0 };
  }
}

/**
 * Touches new pages, and returns the time that each page fault took. Milliseconds; 0 if pages are larger here. By the wall
 * clock, because some kernels count CPU time in steps of 4 ms, as long as 4,000 usual page faults.
 */
function faultMs() {
  const memory = Buffer.allocUnsafeSlow(NEW_MEMORY_BYTES);
  const before = read();
  const began = performance.now();
  for (let i = 0; i < PAGES; i++) memory[i * PAGE_BYTES] = 1;
  const tookMs = performance.now() - began;
  const faults = read().faults - before.faults;
  return faults < PAGES / 2 ? 0 : tookMs / faults;
}

let extraMs;

export function extraFaultMs() {
  extraMs ??= Math.max(0, Math.min(...Array.from({ length: TRIES }, faultMs)) - USUAL_FAULT_MS);
  return extraMs;
}

export function mainThreadUse() {
  const eachMs = extraFaultMs();
  const { cpuMs, waitedMs, faults } = read();
  return { cpuMs, waitedMs, extraMs: faults * eachMs };
}
