import { nightOnly } from './scripts/night-parts.mjs';

const isLong = process.env.SPOOL_LONG === '1';

/** How SWC transforms what the parser reads. React is for the components of the console. */
const swc = (parser) => ({
  jsc: { parser, transform: { legacyDecorator: true, react: { runtime: 'automatic' } }, target: 'es2023' },
  module: { type: 'commonjs' },
});

/** @returns {import('jest').Config} a Jest project: the spec files that match the globs and are not left to the night */
const project = (displayName, globs, extra = {}) => ({
  displayName,
  rootDir: import.meta.dirname,
  testEnvironment: '<rootDir>/libs/testing/environment.ts',
  runtime: '<rootDir>/libs/testing/test-runtime.mjs',
  ...(globs && { testMatch: globs.map((glob) => (glob.startsWith('!') ? glob : `<rootDir>/${glob}`)) }),
  // Streams of Node need the first, and turns of the event loop (libs/platform/process/own-turn.ts) the second.
  fakeTimers: { doNotFake: ['nextTick', 'setImmediate', 'clearImmediate'] },
  transform: {
    '\\.[cm]?[tj]s$': ['@swc/jest', swc({ syntax: 'typescript', decorators: true })],
    '\\.tsx$': ['@swc/jest', swc({ syntax: 'typescript', tsx: true })],
  },
  moduleNameMapper: {
    '^#(.*)$': '<rootDir>/libs/$1/index.ts',
    // Their exports name no file for `require`.
    '^file-type$': '<rootDir>/node_modules/file-type/index.js',
    '^fauxqs$': '<rootDir>/node_modules/fauxqs/dist/app.js',
    '^remend$': '<rootDir>/node_modules/remend/dist/index.js',
    // Vite replaces these by names of classes.
    '^.*\\.module\\.css$': '<rootDir>/libs/testing/css-module.mjs',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/', '<rootDir>/.cache/'],
  testPathIgnorePatterns: nightOnly,
  ...extra,
});

/** Sizes that talk to a real PostgreSQL and Redis, which are started once for the whole run. */
const withServices = {
  globalSetup: '<rootDir>/libs/testing/global-setup.ts',
  globalTeardown: '<rootDir>/libs/testing/global-teardown.ts',
};

/** Sizes that also start processes of Spool, two spec files at a time. */
const withProcesses = { ...withServices, runner: '<rootDir>/test-runner.mjs' };

/** The other projects of `npm run test:all`, which `npm test` leaves out (CONTRIBUTING.md, "Tiers"). */
const slow = {
  faults: ['test/faults/**/*.e2e.spec.ts', '{apps,libs}/**/*.fault.spec.ts'],
  console: ['test/console/**/*.e2e.spec.ts'],
  fuzzing: ['test/fuzzing/**/*.e2e.spec.ts', '{apps,test}/**/*.fuzz.spec.ts'],
  operations: ['test/operations/**/*.e2e.spec.ts', 'bench/**/*.e2e.spec.ts'],
  docs: ['test/docs/**/*.e2e.spec.ts'],
};

/** @type {import('jest').Config} */
export default {
  projects: [
    project('unit', ['{apps,libs,test,bench}/**/*.unit.spec.ts']),
    project('int', ['{apps,libs,test,bench}/**/*.int.spec.ts'], withServices),
    // The main flows and the contract suite.
    project('e2e', ['{apps,libs,test}/**/*.e2e.spec.ts'], {
      ...withProcesses,
      testPathIgnorePatterns: [...nightOnly, `<rootDir>/test/(${Object.keys(slow).join('|')})/`],
    }),
    ...Object.entries(slow).map(([name, globs]) => project(name, globs, withProcesses)),
    project('night', undefined, { ...withProcesses, testRegex: nightOnly, testPathIgnorePatterns: [] }),
  ],
  // Twice the cores of a small machine, because tests often wait.
  maxWorkers: 4,
  // Of `test.concurrent`, which is for tests that wait.
  maxConcurrency: 16,
  testSequencer: './test-sequencer.mjs',
  testTimeout: isLong ? 15 * 60_000 : 60_000,
};
