import Sequencer from '@jest/test-sequencer';

const PROJECTS = ['faults', 'console', 'fuzzing', 'operations', 'docs', 'e2e', 'int', 'unit'];
/**
 * The long ones first, so that at the end all workers are busy: an e2e file takes up to a minute, a unit file a second. Jest
 * goes by the durations in its cache, which a clean clone has none of, and then by the size of files, which says nothing.
 */
export default class extends Sequencer {
  sort(tests) {
    const rank = ({ context }) => PROJECTS.indexOf(context.config.displayName?.name);
    return super.sort([...tests]).toSorted((a, b) => rank(a) - rank(b));
  }
}
