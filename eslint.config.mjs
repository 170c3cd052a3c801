import { readFileSync } from 'node:fs';
import { defineConfig } from 'eslint/config';
import reactHooks from 'eslint-plugin-react-hooks';
import tseslint from 'typescript-eslint';

const testFiles = ['**/*.spec.ts', '**/*.testsuite.ts', '**/*.testing.ts'];

/** What a spec file may not do; a message each, because the rule itself cannot say why. */
const inTests = [
  {
    selector: 'CallExpression[callee.name=/^(setTimeout|delay|sleep|wait)$/] > Literal.arguments[value>=100]',
    message:
      'A fixed sleep is too short on a slow machine and too long on a fast one: wait for a condition (eventually).',
  },
  {
    selector: 'MemberExpression[object.name=/^(it|test|describe)$/][property.name="only"]',
    message: 'This switches all other tests off.',
  },
];

/** Test files that may still read a clock. The list only shrinks (test/clocks.unit.spec.ts). */
const clocksInTests = JSON.parse(readFileSync(new URL('scripts/clocks-in-tests.json', import.meta.url), 'utf8'));
const NO_CLOCK =
  'A shared machine makes any time long. Assert the cause or stored facts, or report a latency (reportLatency).';
const noClock = [
  {
    selector:
      'CallExpression[callee.object.name=/^(performance|Date)$/][callee.property.name="now"], MemberExpression[property.name="hrtime"]',
    message: NO_CLOCK,
  },
  { selector: 'NewExpression[callee.name="Date"][arguments.length=0]', message: NO_CLOCK },
  {
    selector:
      'ImportSpecifier[imported.name=/^(timedTest|expectWithin|eventuallyWithin|unpausedTest|withinBounds|withoutPauses)$/]',
    message: NO_CLOCK,
  },
];

const inDomain = [
  {
    selector: 'NewExpression[callee.name="Date"][arguments.length=0], CallExpression[callee.name="Date"]',
    message: 'The domain has no clock: time comes in as an argument.',
  },
];

export default defineConfig(
  { ignores: ['dist/', 'coverage/', '.data/', '.cache/', 'node_modules/'] },
  {
    files: ['**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
      'max-lines-per-function': ['error', { max: 60, skipBlankLines: true, skipComments: true }],
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      // An async function without await is the short way to turn a throw into a rejection, as a port may demand.
      '@typescript-eslint/require-await': 'off',
    },
  },
  { files: ['apps/console/**/*.tsx'], extends: [reactHooks.configs.flat.recommended] },
  { files: ['apps/cli/**', 'bench/**'], rules: { 'no-console': 'off' } },
  {
    files: testFiles,
    rules: { 'max-lines-per-function': 'off', 'no-restricted-syntax': ['error', ...inTests, ...noClock] },
  },
  { files: clocksInTests, rules: { 'no-restricted-syntax': ['error', ...inTests] } },
  {
    files: ['libs/domain/**/*.ts'],
    ignores: testFiles,
    rules: {
      'no-restricted-syntax': ['error', ...inDomain],
      'no-restricted-properties': [
        'error',
        { object: 'Date', property: 'now', message: 'The domain has no clock: time comes in as an argument.' },
        { object: 'Math', property: 'random', message: 'The domain is deterministic: ids come in as arguments.' },
      ],
    },
  },
  {
    files: ['**/*.mjs', '**/*.cjs'],
    extends: [tseslint.configs.base],
    rules: { eqeqeq: 'error', 'prefer-const': 'error' },
  },
);
