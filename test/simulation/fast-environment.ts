import vm from 'node:vm';
import { TestEnvironment } from 'jest-environment-node';

const SHARED = ['global', 'Buffer', 'ArrayBuffer', 'Uint8Array'];

/**
 * Jest's Node environment, whose globals are ordinary ones. Its own go through a Proxy at each use, `Math` as much as `JSON`,
 * and a simulation does little else: it took three times as long.
 */
export default class extends TestEnvironment {
  private readonly fast: vm.Context;

  constructor(...args: ConstructorParameters<typeof TestEnvironment>) {
    super(...args);
    const { global } = this;
    this.fast = vm.createContext((vm.constants as Record<string, unknown>)['DONT_CONTEXTIFY'] as object);
    const own = vm.runInContext('globalThis', this.fast) as typeof this.global;
    for (const name of Object.getOwnPropertyNames(global))
      if (!(name in own) || SHARED.includes(name))
        defineLate(own, name, () => (global as Record<string, unknown>)[name]);
    Object.assign(own, { global: own });
    own.Error.stackTraceLimit = 10;
    this.global = own;
  }

  override getVmContext(): vm.Context {
    return this.fast;
  }
}

/** A property with that value, which is looked up when it is needed first: some warn, or load much. */
function defineLate(object: object, name: string, look: () => unknown): void {
  const define = (value: unknown): void =>
    void Object.defineProperty(object, name, { value, configurable: true, enumerable: true, writable: true });
  const get = (): unknown => {
    const value = look();
    define(value);
    return value;
  };
  Object.defineProperty(object, name, { get, set: define, configurable: true, enumerable: true });
}
