/**
 * Who may import whom (ARCHITECTURE.md), one rule a sentence. Each is an allowlist: what it does not name is
 * refused. test/architecture plants a violation of every rule and shows that it is caught.
 */
const ours = '^(apps|libs|test|bench)/';
const publicSurfaces = '^libs/([^/]+/index|client/react)\\.ts$';
const testing = '^libs/testing/index\\.ts$';
/** Fixtures of a package, for the tests of packages above it. */
const fixtures = '^libs/[^/]+/[^/]+\\.testing\\.ts$';
const testFiles = '\\.(spec|testsuite|testing)\\.ts$';
/** Not part of what runs in production. */
const testCode = `${testFiles}|^(test|bench)/|^libs/testing/`;

/** The libs that each lib imports besides `platform`, as ARCHITECTURE.md draws them. */
const arrows = {
  access: ['domain'],
  admin: [
    'access',
    'agents',
    'contract',
    'domain',
    'event-store',
    'files',
    'live',
    'projections',
    'run-queue',
    'threads',
  ],
  agents: ['domain', 'task-pool'],
  'event-store': ['domain', 'projections'],
  files: ['domain', 'event-store'],
  live: ['domain', 'event-store'],
  projections: ['domain'],
  'run-engine': ['agents', 'domain', 'event-store', 'files', 'live', 'run-queue', 'task-pool'],
  'run-queue': ['domain', 'event-store'],
  'task-pool': [],
  threads: ['agents', 'domain', 'event-store', 'files', 'projections'],
};

const arrowRules = Object.entries(arrows).map(([lib, others]) => ({
  name: `${lib}-imports-along-its-arrows`,
  comment: 'A new arrow belongs into ARCHITECTURE.md too. Another rule keeps libs/testing out.',
  severity: 'error',
  from: { path: `^libs/${lib}/`, pathNot: testFiles },
  to: { path: '^libs/', pathNot: `^libs/(${[lib, 'platform', 'testing', ...others].join('|')})/` },
}));

/** Where code may use the package of a technology. */
const technologies = {
  ioredis: '^libs/(platform|run-queue|live)/|^libs/admin/ask-redis\\.ts$',
  bullmq: '^libs/run-queue/|^apps/api/console/',
  typeorm: '^libs/event-store/run-migrations\\.ts$',
  '@aws-sdk': '^libs/files/s3-',
  '@assistant-ui': '^apps/console/src/chat/',
};

const technologyRules = Object.entries(technologies).map(([name, places]) => ({
  name: `${name.replace('@', '')}-stays-in-its-place`,
  comment: 'The rest of the code uses an interface of ours.',
  severity: 'error',
  from: { path: ours, pathNot: `${places}|${testCode}` },
  to: { path: `(^|/)node_modules/${name}/` },
}));

module.exports = {
  forbidden: [
    {
      name: 'domain-imports-nothing',
      comment: 'libs/domain is pure: not even Node or npm packages; time and ids come in as arguments.',
      severity: 'error',
      from: { path: '^libs/domain/', pathNot: testFiles },
      to: { pathNot: '^libs/domain/' },
    },
    {
      name: 'contract-and-platform-use-nothing-of-ours',
      severity: 'error',
      from: { path: '^libs/(contract|platform)/', pathNot: testFiles },
      to: { path: ours, pathNot: '^libs/$1/' },
    },
    ...arrowRules,
    ...technologyRules,
    {
      name: 'tests-of-the-lowest-libs-use-only-testing',
      comment: 'Else domain, contract or platform would come to depend on the others by way of their tests.',
      severity: 'error',
      from: { path: `^libs/(domain|contract|platform)/.*${testFiles}` },
      to: { path: ours, pathNot: [testing, '^libs/$1/'] },
    },
    {
      name: 'libs-use-libs-through-their-index',
      comment: "A lib's public surface is its index.ts; apps, test and bench are above the libs.",
      severity: 'error',
      from: { path: '^libs/([^/]+)/', pathNot: [testFiles, '^libs/client/'] },
      to: { path: ours, pathNot: [publicSurfaces, '^libs/$1/'] },
    },
    {
      name: 'client-imports-only-what-it-ships',
      comment:
        'The package runs in browsers without the rest: it bundles the one module that builds messages, which imports nothing.',
      severity: 'error',
      from: { path: '^libs/client/', pathNot: testFiles },
      to: {
        pathNot: [
          '^libs/client/',
          '^libs/domain/reduce-thread\\.ts$',
          '(^|/)node_modules/(eventsource-parser|(@types/)?react)/',
        ],
      },
    },
    {
      name: 'tests-of-libs-use-public-surfaces-and-fixtures',
      comment: 'The tests of a lib can use the fixtures of another lib, instead of a copy of them.',
      severity: 'error',
      from: { path: `^libs/([^/]+)/.*${testFiles}` },
      to: { path: ours, pathNot: [publicSurfaces, fixtures, '^libs/$1/'] },
    },
    {
      name: 'apps-use-libs-through-their-index',
      comment: 'And no other app, nor test or bench.',
      severity: 'error',
      from: { path: '^apps/([^/]+)/', pathNot: '^apps/standalone/' },
      to: { path: ours, pathNot: [publicSurfaces, '^apps/$1/'] },
    },
    {
      name: 'console-takes-only-types-of-the-contract',
      comment: 'The page runs in browsers: it knows the shapes of the admin API, and the package for browsers.',
      severity: 'error',
      from: { path: '^apps/console/src/' },
      to: {
        path: ours,
        pathNot: ['^libs/(client|contract)/index\\.ts$', '^libs/client/react\\.ts$', '^apps/console/src/'],
      },
    },
    {
      name: 'console-takes-no-code-of-the-contract',
      severity: 'error',
      from: { path: '^apps/console/src/' },
      to: { path: '^libs/(?!client/)', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'standalone-composes-the-other-apps-by-their-modules',
      comment: 'And has the api listen as the api process does.',
      severity: 'error',
      from: { path: '^apps/standalone/' },
      to: {
        path: ours,
        pathNot: [publicSurfaces, '^apps/standalone/', '^apps/(api|worker|console)/([^/]+\\.module|start-api)\\.ts$'],
      },
    },
    {
      name: 'tests-and-benchmarks-use-public-surfaces',
      comment: 'They see what a user of a lib sees, and fixtures of the console; apps they start as built processes.',
      severity: 'error',
      from: { path: '^(test|bench)/' },
      to: { path: ours, pathNot: [publicSurfaces, '^apps/console/src/.+\\.testing\\.ts$', '^$1/'] },
    },
    {
      name: 'testing-stays-in-tests',
      severity: 'error',
      from: { path: ours, pathNot: testCode },
      to: { path: '^libs/testing/' },
    },
    {
      name: 'nothing-imports-a-spec-file',
      severity: 'error',
      from: { path: ours },
      to: { path: '\\.spec\\.ts$' },
    },
    {
      name: 'nest-stays-in-apps-and-modules',
      comment: 'A lib is plain code; Nest meets it in its one *.module.ts.',
      severity: 'error',
      from: { path: ours, pathNot: '^apps/|^libs/[^/]+/[^/]+\\.module(\\.(unit|int)\\.spec)?\\.ts$' },
      to: { path: '(^|/)node_modules/@nestjs/' },
    },
    {
      name: 'opentelemetry-stays-in-tracing',
      comment:
        'Everything else uses what libs/platform/telemetry/tracing.ts gives, which is nothing unless it was started.',
      severity: 'error',
      from: { path: ours, pathNot: `^libs/platform/telemetry/(start-)?tracing\\.ts$|${testFiles}` },
      to: { path: '(^|/)node_modules/@opentelemetry/' },
    },
    {
      name: 'production-needs-no-dev-dependency',
      severity: 'error',
      // The page is bundled: what it is made of is needed where it is built. An application brings its own React.
      from: { path: ours, pathNot: `${testCode}|^apps/console/|^libs/client/react\\.ts$` },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'no-cycles',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'all-imports-resolve',
      comment: 'A rule is blind to an import that leads nowhere.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: '(^|/)node_modules/|^dist/' },
    tsPreCompilationDeps: true,
    // `#x` is `libs/x/index.ts` here, and not the built file that package.json names for Node.
    tsConfig: { fileName: 'tsconfig.arch.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
