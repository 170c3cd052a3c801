import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { setPriority } from 'node:os';
import { join } from 'node:path';

const ENTRY = join(import.meta.dirname, 'child-worker.mjs');
const MEBIBYTE = 1024 * 1024;
/** Memory that a child of Node maps and never touches, mostly the stacks of its threads. */
const UNTOUCHED_BYTES = 64 * MEBIBYTE;
/** V8 of Node 24 reserves its code range as writable memory, which RLIMIT_DATA counts. */
const CODE_RANGE_BYTES = Number.parseInt(process.versions.node, 10) >= 24 ? 512 * MEBIBYTE : 0;
/** The part of a child's memory that JavaScript objects may take. The rest is for Node itself and for buffers. */
const HEAP_SHARE = 0.7;
/** Below every process of Spool, so that tasks use what CPU time the others leave. */
const NICE = 10;

const PRLIMIT = '/usr/bin/prlimit';
const SETPRIV = '/usr/bin/setpriv';

/** Whether the kernel limits the memory of children. Otherwise only the JavaScript heap, and what the watch sees, is limited. */
const isMemoryLimited = process.platform === 'linux' && existsSync(PRLIMIT);

/**
 * Starts a child with an empty environment and these descriptors: requests on 0, nothing on 1, error output on 2, answers on
 * 3. Uses RLIMIT_DATA, because RLIMIT_AS also counts the address space that V8 only reserves. Throws if no child can be
 * started, for example because the process has too many files open.
 */
export function spawnChild(memoryBytes: number): ChildProcess {
  const heapMebibytes = Math.floor((memoryBytes * HEAP_SHARE) / MEBIBYTE);
  const node = [process.execPath, `--max-old-space-size=${heapMebibytes}`, '--v8-pool-size=1', ENTRY];
  const [program = '', ...args] = [...limitPrefix(memoryBytes + UNTOUCHED_BYTES + CODE_RANGE_BYTES), ...node];
  const child = spawn(program, args, { cwd: '/', env: {}, stdio: ['pipe', 'ignore', 'pipe', 'pipe'] });
  // Node tells it by an event that nobody could listen to yet, and leaves out the pipes.
  child.once('error', () => undefined);
  if (child.pid === undefined) throw new Error('No process can be started for a task.');
  try {
    // Before Node has threads in it, which inherit the priority.
    setPriority(child.pid, NICE);
  } catch {
    // The child has already ended.
  }
  return child;
}

function limitPrefix(dataBytes: number): string[] {
  if (process.platform !== 'linux') return [];
  // A child that computes does not notice that its parent is gone.
  const dieWithParent = existsSync(SETPRIV) ? [SETPRIV, '--pdeathsig', 'KILL'] : [];
  return [...dieWithParent, ...(isMemoryLimited ? [PRLIMIT, `--data=${dataBytes}`, '--core=0'] : [])];
}
