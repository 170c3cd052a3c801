import TestRunner from 'jest-runner';

/** Files that start processes of Spool run two at a time: each opens about 45 connections, and PostgreSQL allows 100. */
const MAX_WORKERS = 2;

export default class extends TestRunner {
  constructor(globalConfig, context) {
    super({ ...globalConfig, maxWorkers: Math.min(globalConfig.maxWorkers, MAX_WORKERS) }, context);
  }
}
