import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpuOf, cpuOfFamily, parentOf } from './cpu-time.ts';

/** Uses this much CPU time of the process. */
const BURN_MS = 200;
const burn = `while (process.cpuUsage().user < ${BURN_MS * 1_000});`;

test('the CPU time of a process counts its own work, and that of a family also its children', async () => {
  const before = cpuOf(process.pid);
  const family = cpuOfFamily(process.pid);
  const child = spawn(process.execPath, ['-e', `${burn} process.stdout.write('burnt'); setInterval(() => 0, 1e6)`]);
  try {
    await once(child.stdout, 'data');
    const pid = child.pid ?? NaN;
    expect(parentOf(pid)).toBe(process.pid);
    expect(cpuOf(pid)).toBeGreaterThanOrEqual(BURN_MS - 20);
    expect(cpuOfFamily(process.pid) - family).toBeGreaterThanOrEqual(BURN_MS - 20);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'close');
  }
  // Ended children still count.
  expect(cpuOfFamily(process.pid) - family).toBeGreaterThanOrEqual(BURN_MS - 20);
  expect(cpuOf(process.pid)).toBeGreaterThanOrEqual(before);
});
