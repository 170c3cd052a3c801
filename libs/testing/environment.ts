import type { JestEnvironment, JestEnvironmentConfig } from '@jest/environment';
import { ModernFakeTimers } from '@jest/fake-timers';
import { ModuleMocker } from 'jest-mock';
import { runningIn } from './running.ts';

/** Jest's events of a failed test, hook or file. */
const FAILURES = ['test_fn_failure', 'hook_failure', 'error'];

/**
 * The environment of spec files. Their globals are the worker's own, because modules are loaded once for each worker
 * (test-runtime.mjs). Restores what Jest and the spec file changed in them. Fails a spec file that leaves a process, proxy or
 * server running. An `afterAll` in a setup file could not check that, because Jest runs it before the spec file's own.
 */
export default class implements JestEnvironment {
  readonly global = globalThis as unknown as JestEnvironment['global'];
  readonly moduleMocker = new ModuleMocker(globalThis);
  readonly fakeTimers = null;
  readonly fakeTimersModern: ModernFakeTimers;
  private readonly globalsBefore = Object.getOwnPropertyDescriptors(globalThis);
  private readonly variablesBefore = { ...process.env };
  private readonly exitCodeBefore = process.exitCode;
  private readonly exitBefore = Object.getOwnPropertyDescriptor(process, 'exit')!;
  /** What ran before the spec file. In Jest's main process, these are the services of the whole run. */
  private readonly runningBefore = new Set(runningIn(globalThis));
  private ofJest: PropertyKey[] = [];
  private hasFailed = false;

  constructor({ projectConfig }: JestEnvironmentConfig) {
    this.fakeTimersModern = new ModernFakeTimers({ config: projectConfig, global: globalThis });
  }

  exportConditions(): string[] {
    return ['node', 'node-addons'];
  }

  getVmContext(): null {
    return null;
  }

  async setup(): Promise<void> {
    // Jest may end its worker in the middle of a test.
    process.once('exit', this.endAll);
  }

  handleTestEvent({ name }: { name: string }): void {
    if (name === 'setup') this.ofJest = Reflect.ownKeys(globalThis).filter((key) => !(key in this.globalsBefore));
    if (FAILURES.includes(name)) this.hasFailed = true;
    if (name !== 'run_finish') return;
    const left = this.left().map(({ what }) => what);
    this.endAll();
    if (left.length === 0) return;
    const message = `Left running by this file, stop it in afterEach or afterAll: ${left.join(', ')}`;
    // An error would replace what has failed, which may be the reason.
    if (this.hasFailed) process.stderr.write(`${message}\n`);
    else throw new Error(message);
  }

  async teardown(): Promise<void> {
    process.off('exit', this.endAll);
    this.endAll(); // Jest sends no `run_finish` if it fails itself
    this.fakeTimersModern.dispose();
    // Deletes only Jest's globals. The others may belong to a module, which is not loaded again.
    this.ofJest.forEach((key) => Reflect.deleteProperty(globalThis, key));
    Object.entries(this.globalsBefore)
      .filter(([, { configurable }]) => configurable)
      .forEach(([key, before]) => Object.defineProperty(globalThis, key, before));
    Object.defineProperty(process, 'exit', this.exitBefore);
    process.exitCode = this.exitCodeBefore;
    Object.keys(process.env)
      .filter((name) => !(name in this.variablesBefore))
      .forEach((name) => delete process.env[name]);
    Object.assign(process.env, this.variablesBefore);
  }

  private left() {
    return [...runningIn(globalThis)].filter((running) => !this.runningBefore.has(running));
  }

  private readonly endAll = (): void => this.left().forEach((left) => left.end());
}
