/**
 * The night parts: what `.ci/run` leaves out, at full length. No part may take more than 30 minutes (CONTRIBUTING.md, "Tiers").
 *
 * - `what` describes the part in docs/reliability.md.
 * - `nightOnly` matches spec files that run in no other tier. Patterns are regular expressions, as Jest's are.
 * - `long` matches spec files that the gate runs in a short form.
 * - `env` is added to the environment of the tests.
 * - `script` and `args` replace Jest with a script of this folder, which passes options on to Jest.
 * - `bench` replaces Jest with a benchmark, which writes the figures of the row.
 *
 * @typedef {{ what: string, nightOnly?: string[], long?: string[], env?: Record<string, string>, script?: string, args?: string[], bench?: string }} NightPart
 */

/** @type {Record<string, NightPart>} */
export const NIGHT_PARTS = {
  requests: { what: '100,000 generated requests', long: ['test/fuzzing/generated-requests\\.e2e'] },
  simulation: {
    what: '10,000 simulated seeds',
    long: ['test/simulation/simulation\\.fuzz'],
    env: { SPOOL_SEEDS: '10000' },
  },
  replay: {
    what: '100 simulations replayed on PostgreSQL',
    long: ['test/simulation/replay\\.fuzz'],
    env: { SPOOL_SEEDS: '100' },
  },
  fleet: { what: '10,000 Threads on a fleet', nightOnly: ['test/faults/fleet\\.e2e'] },
  streams: {
    what: '10,000 streams, slow readers, cut streams',
    nightOnly: ['test/faults/(many-streams|service-streams|slow-readers)\\.e2e'],
    long: ['test/faults/streams\\.e2e'],
  },
  clients: {
    what: 'generated clients, EventSource libraries',
    nightOnly: ['test/docs/clients\\.e2e', 'test/faults/generic-clients\\.e2e'],
    long: ['libs/client/thread-stream\\.unit'],
  },
  workers: { what: '100 kills of workers', long: ['libs/run-engine/lease-stall\\.int', 'test/faults/workers\\.e2e'] },
  'model-workers': { what: 'kills of workers of `model` Runs', long: ['test/faults/model-workers\\.e2e'] },
  database: { what: 'PostgreSQL restarted, stalled, cut', long: ['test/faults/database\\.e2e'] },
  queue: {
    what: 'Redis emptied, killed, stopped; jobs doubled and late',
    long: ['test/faults/(queue|redis-faults)\\.e2e'],
  },
  'redis-topologies': {
    what: 'Sentinel, Cluster, slot migration',
    nightOnly: [
      'test/faults/redis-failover\\.e2e',
      'libs/run-queue/(run-queue-groups|redis-(cluster-failover|sentinel-failover|slot-migration))\\.fault',
      'libs/platform/redis/connect-redis\\.fault',
      'libs/admin/doctor-redis\\.fault',
    ],
    long: ['libs/access/rate-limiter\\.int', 'libs/live/bus\\.int'],
  },
  clocks: { what: 'clocks 10 minutes fast or slow', nightOnly: ['test/faults/clocks\\.e2e'] },
  'fair-share': { what: '10,000 Runs of one tenant beside another', nightOnly: ['test/faults/fair-share\\.e2e'] },
  tenants: {
    what: 'one hostile tenant beside another',
    nightOnly: ['test/faults/(fair-slots|finished-bodies|hostile-tenant|run-memory)\\.e2e'],
    long: ['test/faults/stalled-bodies\\.e2e', 'test/standalone-large-bodies\\.e2e'],
  },
  'event-loop': {
    what: 'delays of the event loop with the largest inputs',
    nightOnly: ['test/faults/event-loop-(api|worker)\\.e2e'],
  },
  turns: {
    what: 'the longest turn of the event loop for the largest inputs',
    nightOnly: ['libs/platform/postgres/database\\.int'],
    long: [
      'libs/agents/echo/echo-harness\\.unit',
      'libs/agents/file-tools/(edit-text|extract-text)\\.unit',
      'libs/agents/mcp/(flooding-servers|stdio-transport)\\.int',
      'libs/agents/mcp/(hide-secrets|message-lines|read-result|tool-list)\\.unit',
      'libs/agents/model/(answer|large-parts)\\.unit',
      'libs/agents/model/held-units\\.int',
      'libs/agents/tool-input\\.unit',
      'libs/domain/(folder-path|title)\\.unit',
      'libs/platform/process/large-json\\.unit',
      'libs/run-engine/(deltas|stored-text|transcript-turns)\\.unit',
      'libs/task-pool/read-answer\\.unit',
    ],
  },
  disk: { what: 'full disks', nightOnly: ['test/faults/disk\\.e2e'] },
  'large-files': { what: 'large files', nightOnly: ['test/faults/large-files\\.e2e'] },
  upgrade: {
    what: 'rolling upgrades and restarts',
    nightOnly: ['test/faults/rolling-workers\\.e2e'],
    long: ['test/faults/(rolling-upgrade|rolling-restart)\\.e2e'],
  },
  callers: {
    what: 'interrupts, waiting Runs, keys, one Thread',
    nightOnly: ['test/faults/rate-limit\\.e2e'],
    long: [
      'apps/api/http/limits-first\\.int',
      'test/(interrupt|main-job|waiting)\\.e2e',
      'test/faults/(idempotency|one-thread)\\.e2e',
    ],
  },
  providers: {
    what: 'providers that fail',
    nightOnly: ['test/faults/provider\\.e2e'],
    long: ['test/model-runs\\.e2e'],
  },
  'sloppy-servers': {
    what: '10,000 seeds of sloppy providers and tool servers',
    long: ['libs/agents/(mcp/sloppy-servers|model/sloppy-answers)\\.unit'],
    env: { SPOOL_SEEDS: '10000' },
  },
  console: {
    what: 'all pages of the console, speed, restarts, a long chat',
    nightOnly: ['test/console/(chat-long|harness|on-call|pages|restarts|speed)\\.e2e'],
    long: ['test/console/board\\.e2e'],
  },
  access: { what: 'each caller, agent, Thread and route', long: ['apps/api/access-matrix\\.fuzz'] },
  lists: { what: 'lists of the admin API with many Threads', nightOnly: ['apps/api/admin/many-threads\\.int'] },
  operations: {
    what: 'traces, database URLs, benchmarks in small',
    nightOnly: ['test/operations/(traces|database-url)\\.e2e', 'bench/.*\\.e2e'],
  },
  contract: { what: 'the whole contract on both queues', long: ['test/contract/contract'] },
  latency: { what: 'latencies of three rounds in real processes', bench: 'latency' },
  random: {
    what: 'unit tests with 50 times as many random inputs',
    long: [
      'libs/domain/(assembled-messages|citations|ids|message-entries|random-thread|retry-policy|text)\\.unit',
      'libs/live/(live-hub\\.int|open-thread\\.unit)',
    ],
  },
  install: {
    what: '`npm ci && npm start` in a fresh clone, as root',
    nightOnly: ['test/fresh-clone\\.e2e'],
    long: ['libs/platform/embedded-postgres/embedded-postgres-root\\.int', 'test/(standalone|docs/docs)\\.e2e'],
  },
  'node-22': {
    what: 'unit tests, contract, main flow and client package on Node 22',
    script: 'on-node.mjs',
    args: ['22', 'unit.spec', 'test/contract', 'test/main-job', 'test/client'],
  },
  'node-24': {
    what: 'client package on Node 24',
    script: 'on-node.mjs',
    args: ['24', 'libs/client/.*unit.spec', 'test/client'],
  },
};

/** Patterns of the spec files that only the night runs. */
export const nightOnly = Object.values(NIGHT_PARTS).flatMap((part) => part.nightOnly ?? []);
