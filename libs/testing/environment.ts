import { setFlagsFromString } from 'node:v8';
import { TestEnvironment } from 'jest-environment-node';
import { runningIn } from './running.ts';
import { LATER_OPTIMIZING } from './spawn-node.ts';

// Code is short-lived here too, because Jest loads each module again for each spec file. The flag is set here, because
// Node 22 rejects it on the command line.
LATER_OPTIMIZING.forEach((flag) => setFlagsFromString(flag));

/**
 * Jest's Node environment; a spec file that leaves a process, proxy or server behind fails. Not an `afterAll` of a
 * setup file: Jest runs that before the spec file's own.
 */
export default class extends TestEnvironment {
  // Jest's worker may be stopped in the middle of a test.
  private readonly endAll = (): void => runningIn(this.global).forEach((left) => left.end());

  override async setup(): Promise<void> {
    await super.setup();
    process.once('exit', this.endAll);
  }

  handleTestEvent({ name }: { name: string }): void {
    if (name !== 'run_finish') return;
    const left = [...runningIn(this.global)].map(({ what }) => what);
    this.endAll();
    if (left.length > 0)
      throw new Error(`Left running by this file, stop it in afterEach or afterAll: ${left.join(', ')}`);
  }

  override async teardown(): Promise<void> {
    process.off('exit', this.endAll);
    await super.teardown();
  }
}
