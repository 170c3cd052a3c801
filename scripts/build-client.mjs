/** Builds the package `@spool/client` into dist/client, ready for `npm pack`: its modules, their types, its manifest and its page. */
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';

const root = dirname(import.meta.dirname);
const source = join(root, 'libs/client');
/** Files that are copied unchanged. They are in a separate folder, because a package.json beside the code would apply to the code. */
const asIs = join(source, 'package');
const target = join(root, 'dist/client');
const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'));
const { version } = readJson(join(root, 'package.json'));
const manifest = { ...readJson(join(asIs, 'package.json')), version };

/** Leaves the first module out of the others, so that an application has each class once. */
const importIndex = {
  name: 'import-index',
  resolveId: (id) => (id === './index.ts' ? { id: './index.js', external: true } : null),
};

/** `compile` runs tsc with a project. */
export async function buildClient(compile) {
  rmSync(target, { recursive: true, force: true });
  const external = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const write = async (entry, plugins, banner) => {
    const input = join(source, `${entry}.ts`);
    const bundle = await rolldown({ input, external, plugins, platform: 'neutral' });
    const comments = { annotation: true, jsdoc: false, legal: true };
    await bundle.write({ file: join(target, `${entry}.js`), format: 'esm', comments, banner });
  };
  await Promise.all([
    write('index'),
    // Without the directive, frameworks that render on a server run hooks there.
    write('react', [importIndex], '"use client";'),
    compile(join(source, 'tsconfig.json')),
  ]);
  // Old bundlers and compilers look for `.js`.
  for (const entry of readdirSync(join(target, 'types'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(from '\.[^']+)\.ts'/g, "$1.js'"));
  }
  // Last: the time of the manifest is that of the last complete build.
  for (const file of ['README.md', 'unsupported.cjs']) copyFileSync(join(asIs, file), join(target, file));
  writeFileSync(join(target, 'package.json'), JSON.stringify(manifest, null, 2));
}
