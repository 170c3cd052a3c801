import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

const root = join(import.meta.dirname, '../..');
const configFile = join(root, '.dependency-cruiser.cjs');
const cruiser = join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs');

interface Report {
  summary: { violations: { rule: { name: string }; from: string; to: string }[] };
}

/** A project in small that keeps every rule. */
const lawful: Record<string, string> = {
  'libs/domain/index.ts': `export * from './decide.ts';`,
  'libs/domain/decide.ts': `export const decide = 1;`,
  'libs/domain/decide.unit.spec.ts': `import 'fast-check'; import '#testing'; import { decide } from '#domain'; decide;`,
  'libs/client/index.ts': `export {};`,
  'libs/contract/index.ts': `import 'zod';`,
  'libs/platform/index.ts': `import 'node:fs'; import 'zod'; import './own.ts';`,
  'libs/platform/own.ts': `export {};`,
  'libs/platform/telemetry/tracing.ts': `import '@opentelemetry/api';`,
  'libs/event-store/index.ts': `import { decide } from '#domain'; import '#platform'; export const store = decide;`,
  'libs/event-store/event-store.module.ts': `import '@nestjs/common';`,
  'libs/event-store/store.int.spec.ts': `import '#testing'; import './store.testsuite.ts';`,
  'libs/event-store/store.testing.ts': `import '#testing';`,
  'libs/files/files.int.spec.ts': `import '../event-store/store.testing.ts';`,
  'libs/event-store/store.testsuite.ts': `import '#testing'; import 'fast-check';`,
  'libs/task-pool/index.ts': `export {};`,
  'libs/testing/index.ts': `import '#event-store'; import 'fast-check';`,
  'apps/api/api.module.ts': `import '@nestjs/common'; import '#event-store'; import './own.ts';`,
  'apps/api/own.ts': `export {};`,
  'apps/worker/worker.module.ts': `export {};`,
  'apps/console/src/main.tsx': `import type { store } from '#contract'; import '#client'; import './own.ts'; export type T = typeof store;`,
  'apps/console/src/own.ts': `export {};`,
  'apps/standalone/main.ts': `import '../api/api.module.ts'; import '../worker/worker.module.ts';`,
  'test/some.e2e.spec.ts': `import '#testing'; import { store } from '#event-store'; store;`,
  'bench/main.ts': `import '#testing'; import '#event-store';`,
};

type Planted = [rule: string, file: string, source: string];

/** The libs whose arrows ARCHITECTURE.md draws. The others have rules of their own. */
const ARROWED = readdirSync(join(root, 'libs')).filter(
  (lib) => !['client', 'contract', 'domain', 'platform', 'testing'].includes(lib),
);

/** One broken rule a file. */
const planted: Planted[] = [
  ['domain-imports-nothing', 'libs/domain/npm.ts', `import 'zod';`],
  ['domain-imports-nothing', 'libs/domain/node.ts', `import { randomUUID } from 'node:crypto'; randomUUID;`],
  ['domain-imports-nothing', 'libs/domain/lib.ts', `import '#event-store';`],
  [
    'domain-imports-nothing',
    'libs/domain/type-only.ts',
    `import type { ZodType } from 'zod'; export type T = ZodType;`,
  ],
  ['contract-and-platform-use-nothing-of-ours', 'libs/contract/domain.ts', `import '#domain';`],
  ['contract-and-platform-use-nothing-of-ours', 'libs/platform/domain.ts', `import '#domain';`],
  [
    'contract-and-platform-use-nothing-of-ours',
    'libs/platform/lazy.ts',
    `export const load = () => import('#domain');`,
  ],
  ...ARROWED.map((lib): Planted => {
    const other = lib === 'admin' ? '#task-pool' : '#contract';
    return [`${lib}-imports-along-its-arrows`, `libs/${lib}/astray.ts`, `import '${other}';`];
  }),
  ['ioredis-stays-in-its-place', 'libs/event-store/redis.ts', `import 'ioredis';`],
  ['bullmq-stays-in-its-place', 'libs/live/jobs.ts', `import 'bullmq';`],
  ['typeorm-stays-in-its-place', 'libs/event-store/entities.ts', `import 'typeorm';`],
  ['aws-sdk-stays-in-its-place', 'libs/files/bucket.ts', `import '@aws-sdk/client-s3';`],
  ['assistant-ui-stays-in-its-place', 'apps/console/src/thread/list.tsx', `import '@assistant-ui/react';`],
  ['tests-of-the-lowest-libs-use-only-testing', 'libs/domain/up.unit.spec.ts', `import '#event-store';`],
  ['libs-use-libs-through-their-index', 'libs/event-store/deep.ts', `import '../domain/decide.ts';`],
  [
    'libs-use-libs-through-their-index',
    'libs/event-store/type.ts',
    `import type { decide } from '../domain/decide.ts'; export type T = typeof decide;`,
  ],
  ['libs-use-libs-through-their-index', 'libs/event-store/app.ts', `import '../../apps/api/own.ts';`],
  ['libs-use-libs-through-their-index', 'libs/files/fixture.ts', `import '../event-store/store.testing.ts';`],
  ['client-imports-only-what-it-ships', 'libs/client/domain.ts', `import '#domain';`],
  ['client-imports-only-what-it-ships', 'libs/client/node.ts', `import 'node:fs';`],
  ['client-imports-only-what-it-ships', 'libs/client/npm.ts', `import 'zod';`],
  [
    'tests-of-libs-use-public-surfaces-and-fixtures',
    'libs/event-store/deep.int.spec.ts',
    `import '../domain/decide.ts';`,
  ],
  ['apps-use-libs-through-their-index', 'apps/api/deep.ts', `import '../../libs/domain/decide.ts';`],
  ['apps-use-libs-through-their-index', 'apps/api/other-app.ts', `import '../worker/worker.module.ts';`],
  [
    'console-takes-only-types-of-the-contract',
    'apps/console/src/domain.ts',
    `import type { decide } from '#domain'; export type T = typeof decide;`,
  ],
  ['console-takes-no-code-of-the-contract', 'apps/console/src/code.tsx', `import '#contract';`],
  ['standalone-composes-the-other-apps-by-their-modules', 'apps/standalone/inside.ts', `import '../api/own.ts';`],
  ['tests-and-benchmarks-use-public-surfaces', 'test/deep.e2e.spec.ts', `import '../libs/domain/decide.ts';`],
  ['tests-and-benchmarks-use-public-surfaces', 'bench/app.ts', `import '../apps/api/own.ts';`],
  ['testing-stays-in-tests', 'libs/event-store/helped.ts', `import '#testing';`],
  ['nothing-imports-a-spec-file', 'libs/event-store/spec.ts', `import './store.int.spec.ts';`],
  ['nest-stays-in-apps-and-modules', 'libs/event-store/nest.ts', `import '@nestjs/common';`],
  [
    'nest-stays-in-apps-and-modules',
    'libs/platform/nest.ts',
    `import type { Module } from '@nestjs/common'; export type T = Module;`,
  ],
  ['opentelemetry-stays-in-tracing', 'libs/event-store/traces.ts', `import '@opentelemetry/api';`],
  ['production-needs-no-dev-dependency', 'apps/api/dev.ts', `import 'fast-check';`],
  ['no-cycles', 'libs/event-store/one.ts', `import { two } from './two.ts'; export const one: number = two;`],
  ['all-imports-resolve', 'libs/event-store/gone.ts', `import '#gone';`],
  ['all-imports-resolve', 'apps/api/gone.ts', `import './gone-too.ts';`],
];

let directory: string;

function write(files: Record<string, string>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(directory, name)), { recursive: true });
    writeFileSync(join(directory, name), content);
  }
}

function cruise(): string[] {
  const args = [cruiser, '--config', configFile, '--output-type', 'json', 'apps', 'libs', 'test', 'bench'];
  const { stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: directory,
    encoding: 'utf8',
    maxBuffer: 2 ** 26,
  });
  if (!stdout) throw new Error(stderr);
  const { summary } = JSON.parse(stdout) as Report;
  return summary.violations.map(({ rule, from }) => `${rule.name}: ${from}`).sort();
}

beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'spool-architecture-'));
  for (const name of ['tsconfig.json', 'tsconfig.arch.json']) cpSync(join(root, name), join(directory, name));
  const npm = (name: string): Record<string, string> => ({
    [`node_modules/${name}/package.json`]: JSON.stringify({ name, main: 'index.js' }),
    [`node_modules/${name}/index.js`]: '',
  });
  const names = [
    'zod',
    '@nestjs/common',
    '@opentelemetry/api',
    'ioredis',
    'bullmq',
    'typeorm',
    '@aws-sdk/client-s3',
    '@assistant-ui/react',
  ];
  for (const name of [...names, 'fast-check']) write(npm(name));
  const dependencies = Object.fromEntries(names.map((name) => [name, '*']));
  write({ 'package.json': JSON.stringify({ dependencies, devDependencies: { 'fast-check': '*' } }) });
  write(lawful);
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

it('has nothing against a project that keeps the rules', () => {
  expect(cruise()).toEqual([]);
});

it('catches a planted violation of every rule, and calls it by its name', () => {
  write(Object.fromEntries(planted.map(([, file, source]) => [file, source])));
  // The other half of the cycle, which is reported once. A cycle of types is one too.
  write({ 'libs/event-store/two.ts': `import type { one } from './one.ts'; export const two = 2 as typeof one;` });
  expect(cruise()).toEqual(planted.map(([rule, file]) => `${rule}: ${file}`).sort());
});

it('has a planted violation for every rule that there is', () => {
  const print = `process.stdout.write(JSON.stringify(require(${JSON.stringify(configFile)}).forbidden.map((r) => r.name)))`;
  const rules = JSON.parse(execFileSync(process.execPath, ['-e', print], { encoding: 'utf8' })) as string[];
  expect([...new Set(planted.map(([rule]) => rule))].sort()).toEqual(rules.sort());
});
