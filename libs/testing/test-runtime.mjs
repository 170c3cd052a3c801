/**
 * Jest's module loader for spec files and testsuites only. Node loads what they import, once for each worker instead of once for
 * each spec file, because loading took a third of the tests' CPU time (November 2026). So modules have the worker's own globals
 * (environment.ts), and their state lasts from one spec file to the next.
 *
 * A spec file that calls `jest.mock` or `jest.resetModules` has its own copy of our modules, because they must import the mocks,
 * or start from their initial state.
 */
import { readFileSync } from 'node:fs';
import Module, { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { compileFunction } from 'node:vm';
import Runtime from 'jest-runtime';

const require = createRequire(import.meta.url);
const root = dirname(dirname(import.meta.dirname));

/** The runtime of the current spec file. It also transforms the files that Node loads. */
let current;
/** The source map file of each module that Node loaded, by the path of the module. */
const sourceMaps = new Map();

const isOurs = (file) => file.startsWith(root) && !file.startsWith(join(root, 'node_modules'));
const definesTests = (file) => /\.(spec|testsuite)\.tsx?$/.test(file);

const resolveFilename = Module._resolveFilename;
Module._resolveFilename = function (name, ...rest) {
  const mapping = current?.mappings.find(([pattern]) => pattern.test(name));
  return resolveFilename.call(this, mapping ? name.replace(...mapping) : name, ...rest);
};

for (const extension of ['.ts', '.tsx'])
  Module._extensions[extension] = (module, file) => {
    module._compile(current.transformCache.transform(file), file);
    sourceMaps.set(file, current.getSourceMaps().get(file));
  };

export default class extends Runtime {
  constructor(config, environment, ...rest) {
    super(config, environment, ...rest);
    current = this;
    const testPath = rest.at(-2);
    this.hasOwnModules = /jest\.((do|unstable_)?mock(Module)?|setMock|isolateModules(Async)?|resetModules)\(/i.test(
      readFileSync(testPath, 'utf8'),
    );
    this.mappings = config.moduleNameMapper.map(([pattern, target]) => [new RegExp(pattern), target]);
    const { executor } = this;
    executor.compile = (code, filename) => compileFunction(code, executor.injectedModuleParameters, { filename });
    // Jest passes `jest` to the modules that it loads. The others need it as a global.
    environment.global.jest = this.jestGlobals.jestObjectFor(testPath);
    sourceMaps.forEach((map, file) => this.getSourceMaps().set(file, map));
  }

  requireModuleOrMock(from, name) {
    if (Module.isBuiltin(name) || this.mockState.shouldMockCjs(from, name).shouldMock)
      return super.requireModuleOrMock(from, name);
    const file = createRequire(from).resolve(name);
    return isOurs(file) && (this.hasOwnModules || definesTests(file))
      ? super.requireModuleOrMock(from, name)
      : require(file);
  }

  /** Loads Jest's own modules. Without a name, Jest asks for its runner, which keeps the state of a spec file. */
  requireInternalModule(from, name) {
    if (name !== undefined) return createRequire(from)(name);
    delete require.cache[from];
    return require(from);
  }
}
