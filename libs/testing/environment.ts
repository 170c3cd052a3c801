import { TestEnvironment } from 'jest-environment-node';
import { runningIn } from './running.ts';

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
