/**
 * Shows that the tests find mistakes: `npm run mutants [-- NUMBER…]`. Applies each mistake to the source, one at a time, runs the
 * spec that should find it, and restores the source. Before that, all these specs must pass without a mistake. Exits with 1 if
 * more than one mistake is not found.
 *
 * The mistakes were chosen by reading the product, before looking at the tests. Specs of test/ run the built code, so their
 * mistakes are built too. Other specs run the source.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './platforms.mjs';

/** The most mistakes that the specs may miss. */
const MISSES = 1;

/** @type {{ area: string, file: string, from: string, to: string, spec: string }[]} */
const MUTANTS = [
  {
    area: 'idempotency',
    file: 'apps/api/idempotency.ts',
    from: 'stored.fingerprint !== fingerprint',
    to: 'stored.fingerprint.length !== fingerprint.length',
    spec: 'apps/api/error-reasons.int',
  },
  {
    area: 'idempotency',
    file: 'libs/event-store/append.sql',
    from: "else pg_try_advisory_xact_lock(hashtextextended(input.token_id || ' ' || input.key, 0)) end as held",
    to: 'else true end as held',
    spec: 'libs/event-store/append.int',
  },
  {
    area: 'fencing',
    file: 'libs/event-store/append.sql',
    from: "(s.state #>> '{runs,0,attempt}')::integer = input.proof_attempt))",
    to: "(s.state #>> '{runs,0,attempt}')::integer >= input.proof_attempt))",
    spec: 'libs/event-store/append.int',
  },
  {
    area: 'fencing',
    file: 'libs/domain/decide-worker.ts',
    from: 'run.attempt !== command.attempt',
    to: 'run.attempt < command.attempt',
    spec: 'libs/domain/decide-worker.unit',
  },
  {
    area: 'lease',
    file: 'libs/run-engine/renew-leases.sql',
    from: '  and run_work.due_at > clock_timestamp()\n',
    to: '',
    spec: 'libs/run-engine/stopping.int',
  },
  {
    area: 'lease',
    file: 'libs/run-engine/lease-keeper.ts',
    from: 'renewedAt + this.options.leaseMs',
    to: 'performance.now() + this.options.leaseMs',
    spec: 'libs/run-engine/lease-keeper.unit',
  },
  {
    area: 'lease',
    file: 'libs/run-engine/claim.ts',
    from: 'START_ALONE_AFTER_MS = 20;',
    to: 'START_ALONE_AFTER_MS = 5_000;',
    spec: 'libs/run-engine/booting.int',
  },
  {
    area: 'dispatch',
    file: 'libs/domain/decide-worker.ts',
    from: ' && current.dispatch === dispatch',
    to: '',
    spec: 'libs/domain/decide-worker.unit',
  },
  {
    area: 'dispatch',
    file: 'libs/run-queue/find-ready-runs.sql',
    from: 'order by candidate.has_slot or ready.turn > 1, ready.turn, ready.since',
    to: 'order by ready.since',
    spec: 'libs/run-queue/run-queue.int',
  },
  {
    area: 'reaper',
    file: 'libs/event-store/append.sql',
    from: ' and (due_at <= clock_timestamp() or work_until <= clock_timestamp())',
    to: '',
    spec: 'libs/event-store/append.int',
  },
  {
    area: 'reaper',
    file: 'libs/run-engine/find-open-step.sql',
    from: "e.type in ('run.claimed', ",
    to: 'e.type in (',
    spec: 'libs/run-engine/reaper.int',
  },
  {
    area: 'reaper',
    file: 'libs/run-engine/reaper.ts',
    from: 'thread.version === version ? [command] : []',
    to: 'thread.version >= version ? [command] : []',
    spec: 'libs/run-engine/reaper.int',
  },
  {
    area: 'access',
    file: 'libs/access/policy.ts',
    from: 'caller.organizationId === agent.organizationId && caller.agentIds',
    to: 'caller.agentIds',
    spec: 'libs/access/policy.unit',
  },
  {
    area: 'access',
    file: 'apps/api/streams/event-stream.ts',
    from: '>= ALLOWED_MS) {',
    to: '>= 10 * ALLOWED_MS) {',
    spec: 'apps/api/streams/open-streams.int',
  },
  {
    area: 'rate limit',
    file: 'libs/access/rate-window.ts',
    from: '(this.limit - this.counted) / processes',
    to: 'this.limit - this.counted',
    spec: 'libs/access/rate-window.unit',
  },
  {
    area: 'rate limit',
    file: 'apps/api/http/limit-rate.ts',
    from: 'Array.from({ length: this.lookUps }, ',
    to: 'Array.from({ length: 0 }, ',
    spec: 'apps/api/http/limit(-rate|s-first)',
  },
  {
    area: 'resume of streams',
    file: 'libs/event-store/read-log-after.sql',
    from: 'and public and id > $2',
    to: 'and public and id >= $2',
    spec: 'test/contract/contract.postgresql',
  },
  {
    area: 'resume of streams',
    file: 'libs/live/open-thread.ts',
    from: 'if (news !== this.news) void this.readOn();',
    to: 'if (news > this.news) void this.readOn();',
    spec: 'libs/live/open-thread.unit',
  },
  {
    area: 'deletion',
    file: 'libs/event-store/delete-thread.sql',
    from: "answers as (update idempotency_keys set body = '' where thread_id = $1)",
    to: "answers as (update idempotency_keys set body = '' where thread_id = $1 and false)",
    spec: 'test/contract/contract.postgresql',
  },
  {
    area: 'files',
    file: 'libs/files/change-files.sql',
    from: 'and (owner_person_id = $5 or owner_service_token_id = $6)',
    to: 'and (owner_person_id = $5 or owner_service_token_id = $6 or true)',
    spec: 'libs/files/file-changes.int',
  },
  {
    area: 'files',
    file: 'libs/files/take-due-blob.sql',
    from: 'where due_at <= clock_timestamp() order by',
    to: 'order by',
    spec: 'apps/worker/housekeeping.int',
  },
  {
    area: 'approvals',
    file: 'libs/domain/decide-caller.ts',
    from: 'if (open.length > 1) return [decided];',
    to: 'if (open.length > 2) return [decided];',
    spec: 'libs/domain/decide-caller.unit',
  },
  {
    area: 'approvals',
    file: 'libs/agents/tool-policy.ts',
    from: 'tools.find(',
    to: 'tools.findLast(',
    spec: 'libs/agents/tool-policy.unit',
  },
  {
    area: 'projections',
    file: 'libs/projections/columns.ts',
    from: 'const [, ...others] = columns;',
    to: "const [, ...others] = columns.filter((name) => name !== 'archived');",
    spec: 'libs/projections/(verify|rebuild).int',
  },
  {
    area: 'migrations',
    file: 'libs/event-store/migrate.ts',
    from: "    await lock.query('select pg_advisory_lock($1)', [ADVISORY_LOCKS.migrations]);\n",
    to: '',
    spec: 'libs/event-store/migrate.int',
  },
];

const numbers = process.argv.slice(2).map(Number);
const chosen = MUTANTS.map((mutant, i) => ({ ...mutant, number: i + 1 })).filter(
  ({ number }) => numbers.length === 0 || numbers.includes(number),
);
if (chosen.length === 0 || chosen.length < numbers.length) {
  console.error(`Choose numbers from 1 to ${MUTANTS.length}, or none for all.`);
  process.exit(2);
}
const specs = [...new Set(chosen.map(({ spec }) => spec))];
if (!(await passes(...specs))) throw new Error(`A spec fails without a mistake, or is missing: ${specs.join(', ')}`);

const missed = [];
for (const { number, ...mutant } of chosen) {
  const startedAt = Date.now();
  const isFound = await findsMistake(mutant);
  if (!isFound) missed.push(number);
  const seconds = ((Date.now() - startedAt) / 1_000).toFixed(0);
  console.log(
    `${isFound ? 'found    ' : 'NOT FOUND'} ${number} ${mutant.area}: ${mutant.file} (${mutant.spec}, ${seconds} s)`,
  );
}
await buildFor(specs);
console.log(`${missed.length} not found${missed.length > 0 ? `: ${missed.join(', ')}` : ''}`);
process.exitCode = missed.length > MISSES ? 1 : 0;

/** Returns whether the spec fails with the mistake. Restores the source, also when this process is interrupted. */
async function findsMistake({ file, from, to, spec }) {
  const path = join(root, file);
  const source = readFileSync(path, 'utf8');
  if (source.split(from).length !== 2) throw new Error(`${file} does not contain this text exactly once: ${from}`);
  const restore = () => writeFileSync(path, source);
  const interrupted = () => {
    restore();
    process.exit(130);
  };
  process.on('SIGINT', interrupted).on('SIGTERM', interrupted);
  try {
    writeFileSync(
      path,
      source.replace(from, () => to),
    );
    return !(await passes(spec));
  } finally {
    restore();
    process.off('SIGINT', interrupted).off('SIGTERM', interrupted);
  }
}

/**
 * Runs the spec files that match the patterns. Returns whether all pass. Throws if Jest fails without a failed test, for example
 * because PostgreSQL does not start: that finds no mistake.
 */
async function passes(...patterns) {
  await buildFor(patterns);
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  // With --bail Jest writes no report in JSON.
  const { status, output } = await run(jest, '--no-watchman', '--bail', '--testPathPatterns', ...patterns);
  if (status === 0) return true;
  if (!/^FAIL /m.test(output) || output.includes('Test suite failed to run')) throw new Error(output);
  return false;
}

/** Specs of test/ run what is built. */
async function buildFor(patterns) {
  if (!patterns.some((pattern) => pattern.startsWith('test/'))) return;
  const { status, output } = await run(join(root, 'scripts', 'build.mjs'), '--if-stale');
  if (status !== 0) throw new Error(`The build failed. A mistake must compile.\n${output}`);
}

async function run(...args) {
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] });
  let output = '';
  child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
  const [status] = await once(child, 'close');
  return { status, output };
}
