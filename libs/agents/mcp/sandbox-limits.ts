import { access, constants } from 'node:fs/promises';
import type { Config } from '#platform';
import { SandboxMissing } from './sandbox-missing.ts';

const MEBIBYTE = 1024 * 1024;

const CPU_SECONDS = 600;
const OPEN_FILES = 1_024;
const FILE_BYTES = 256 * MEBIBYTE;
/** Processes and threads. Only a user namespace of its own counts those of one server; otherwise those of the user count. */
const PROCESSES = { bubblewrap: 64, user: 1_024, none: null };

export interface Limits {
  /**
   * Memory of one server, bytes. Also RLIMIT_DATA of each of its processes, because a process is refused memory at once, and
   * the watch of the server comes later. Not RLIMIT_AS, because Node maps far more than it uses.
   */
  memoryBytes: number;
  /** Seconds of CPU that one server may use, and each of its processes. Default: 600. */
  cpuSeconds?: number;
  /** The folder of `prlimit`, `chrt`, `choom` and `nice`. Default: `/usr/bin`. */
  programs?: string;
}

/** The limits of a server's processes together. The watch kills the server beyond them. */
export interface ServerLimits {
  memoryBytes: number;
  cpuMs: number;
}

export const serverLimits = ({ memoryBytes, cpuSeconds = CPU_SECONDS }: Limits): ServerLimits => ({
  memoryBytes,
  cpuMs: cpuSeconds * 1_000,
});

/**
 * Returns what comes before a program to limit each of its processes. Throws SandboxMissing if `prlimit` is missing; returns
 * nothing then with the isolation `none`.
 */
export async function limitArgs(
  isolation: Config['TOOL_SERVER_ISOLATION'],
  { memoryBytes, cpuSeconds = CPU_SECONDS, programs = '/usr/bin' }: Limits,
): Promise<string[]> {
  const [prlimit, chrt, choom, nice] = ['prlimit', 'chrt', 'choom', 'nice'].map(
    (name) => `${programs}/${name}`,
  ) as Four;
  if (!(await isProgram(prlimit))) {
    if (isolation === 'none') return [];
    throw new SandboxMissing('Tool servers need the program prlimit for their limits; install util-linux.');
  }
  const processes = PROCESSES[isolation];
  const limits = { data: memoryBytes, cpu: cpuSeconds, nofile: OPEN_FILES, fsize: FILE_BYTES, core: 0 };
  // Without the last two a program could give itself a higher priority where the worker may.
  const all = { ...limits, ...(processes === null ? {} : { nproc: processes }), nice: 0, rtprio: 0 };
  return [
    ...((await isProgram(chrt)) ? [chrt, '--idle', '0'] : [nice, '-n', '19']),
    // Where memory ends, the kernel kills them before the worker.
    ...((await isProgram(choom)) ? [choom, '-n', '1000', '--'] : []),
    ...[prlimit, ...Object.entries(all).map(([name, limit]) => `--${name}=${limit}`), '--'],
  ];
}

type Four = [string, string, string, string];

const isProgram = (path: string): Promise<boolean> =>
  access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
