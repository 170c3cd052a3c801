import { describeContract } from './support/contract.testsuite.ts';
import { World } from './support/world.ts';

describe('the contract, jobs on PostgreSQL', () => {
  describeContract(new World('PostgreSQL', () => undefined));
});
