/**
 * Rules of this project, as a plugin of oxlint (.oxlintrc.json). Each rule maps syntax selectors to the messages that it reports.
 * Oxlint has no `no-restricted-syntax` of its own.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

const root = new URL('..', import.meta.url).pathname;
/** Test files that may still read a clock. The list only shrinks (test/clocks.unit.spec.ts). */
const clocksInTests = new Set(JSON.parse(readFileSync(new URL('clocks-in-tests.json', import.meta.url), 'utf8')));

const NO_CLOCK =
  'A shared machine makes any time long. Assert the cause or stored facts, or report a latency (reportLatency).';
const NO_CLOCK_IN_DOMAIN = 'The domain has no clock: time comes in as an argument.';

/** The selectors of each rule, with their messages. */
const rules = {
  'no-sleep-in-tests': {
    'CallExpression[callee.name=/^(setTimeout|delay|sleep|wait)$/] > Literal.arguments[value>=100]':
      'A fixed sleep is too short on a slow machine and too long on a fast one: wait for a condition (eventually).',
  },
  'no-only-in-tests': {
    'MemberExpression[object.name=/^(it|test|describe)$/][property.name="only"]': 'This switches all other tests off.',
  },
  'no-clock-in-tests': {
    'CallExpression[callee.object.name=/^(performance|Date)$/][callee.property.name="now"]': NO_CLOCK,
    'MemberExpression[property.name="hrtime"]': NO_CLOCK,
    'NewExpression[callee.name="Date"][arguments.length=0]': NO_CLOCK,
  },
  'no-clock-in-domain': {
    'NewExpression[callee.name="Date"][arguments.length=0]': NO_CLOCK_IN_DOMAIN,
    'CallExpression[callee.name="Date"]': NO_CLOCK_IN_DOMAIN,
    'CallExpression[callee.object.name="Date"][callee.property.name="now"]': NO_CLOCK_IN_DOMAIN,
    'CallExpression[callee.object.name="Math"][callee.property.name="random"]':
      'The domain is deterministic: ids come in as arguments.',
  },
};

const refuse = (selectors, exempt) => ({
  create(context) {
    if (exempt?.has(relative(root, context.filename))) return {};
    return Object.fromEntries(
      Object.entries(selectors).map(([selector, message]) => [selector, (node) => context.report({ node, message })]),
    );
  },
});

export default {
  meta: { name: 'spool' },
  rules: Object.fromEntries(
    Object.entries(rules).map(([name, selectors]) => [
      name,
      refuse(selectors, name === 'no-clock-in-tests' ? clocksInTests : undefined),
    ]),
  ),
};
