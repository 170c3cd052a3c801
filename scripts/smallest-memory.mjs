/**
 * Finds the smallest memory limits under which processes start and serve, and survive the attacks of a hostile tenant:
 * `npm run build && node scripts/smallest-memory.mjs`. Bisects a range in steps of 16 MiB, in about 20 minutes. Run nothing else
 * on the machine meanwhile. A spec that fails for any reason counts as too little memory; the end of its output is shown.
 */
import { spawnSync } from 'node:child_process';
import { root } from './platforms.mjs';

const STEP = 16;
const ENOUGH = { api: 1024, worker: 1024 };

/** The specs, and the ranges to search, MiB. */
const TASKS = {
  'starts and serves a small Run': { spec: 'test/main-job', from: 48, to: 160 },
  'survives the attacks': { spec: 'faults/hostile-tenant', from: 128, to: 256 },
};

const rows = [];
for (const [what, task] of Object.entries(TASKS)) {
  for (const process of ['api', 'worker']) rows.push({ process, what, 'smallest limit': smallest(process, task) });
}
console.table(rows);

/** Returns the smallest limit of one process under which the spec passes, while the other process has enough. */
function smallest(name, { spec, from, to }) {
  let [tooLittle, enough] = [from, to];
  if (!passes(name, spec, enough)) return `more than ${to} MiB`;
  while (enough - tooLittle > STEP) {
    const middle = tooLittle + Math.ceil((enough - tooLittle) / 2 / STEP) * STEP;
    if (passes(name, spec, middle)) enough = middle;
    else tooLittle = middle;
  }
  return `${enough} MiB`;
}

function passes(name, spec, mebibytes) {
  const limits = { ...ENOUGH, [name]: mebibytes };
  const jest = ['node_modules/.bin/jest', '--no-watchman', '--ci', '-w', '1', '--testPathPatterns', spec];
  const { status, stderr } = spawnSync(process.execPath, jest, {
    cwd: root,
    encoding: 'utf8',
    env: {
      ...process.env,
      ...{ SPOOL_API_MEMORY_MIB: String(limits.api), SPOOL_WORKER_MEMORY_MIB: String(limits.worker) },
      SPOOL_ATTACK_MS: '20000',
    },
  });
  const told = stderr.match(/^memory limit of .*/gm) ?? [];
  console.log(`${name}, ${spec}, ${mebibytes} MiB: ${status === 0 ? 'passes' : 'fails'}`);
  if (told.length > 0) console.log(told.join('\n'));
  if (status !== 0) console.log(stderr.slice(-1_500));
  return status === 0;
}
