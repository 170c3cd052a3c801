import TestRunner from 'jest-runner';

/** Files that measure times against narrow bounds run one at a time (jest.config.mjs). */
export default class extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: 1 }, context);
  }
}
