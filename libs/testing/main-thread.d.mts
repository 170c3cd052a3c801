/** The use of the main thread since the process started. Milliseconds. */
export interface MainThreadUse {
  /** CPU time, with `extraMs`. Where the kernel does not report it, that of all threads. */
  cpuMs: number;
  /** How long the thread was ready while the kernel ran others. 0 where the kernel does not report it. */
  waitedMs: number;
  /** How much of the CPU time page faults took beyond what they usually take. */
  extraMs: number;
}

export function mainThreadUse(): MainThreadUse;

/**
 * Returns the extra time of a page fault on this machine, milliseconds. The first call measures it. Nearly 0 on most machines.
 * 0.015 in a virtual machine whose addresses are translated in software: there, fresh memory costs ten times as much.
 */
export function extraFaultMs(): number;
