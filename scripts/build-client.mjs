/** Builds the package `@spool/client` into dist/client, ready for `npm pack`: one module, its types, its manifest and its page. */
import { copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { rolldown } from 'rolldown';

const root = dirname(import.meta.dirname);
const source = join(root, 'libs/client');
/** Files of the package as they are. A manifest beside the code would be the manifest of the code, for Node and compilers. */
const asIs = join(source, 'package');
const target = join(root, 'dist/client');
const manifest = JSON.parse(readFileSync(join(asIs, 'package.json'), 'utf8'));

/** `compile` runs tsc with a project. */
export async function buildClient(compile) {
  rmSync(target, { recursive: true, force: true });
  const external = Object.keys(manifest.dependencies);
  const bundle = await rolldown({ input: join(source, 'index.ts'), external, platform: 'neutral' });
  await Promise.all([
    bundle.write({ dir: target, format: 'esm', comments: { annotation: true, jsdoc: false, legal: true } }),
    compile(join(source, 'tsconfig.json')),
  ]);
  // Old bundlers and compilers look for `.js`.
  for (const entry of readdirSync(join(target, 'types'), { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(/(from '\.[^']+)\.ts'/g, "$1.js'"));
  }
  // Last: the time of the manifest is that of the last complete build.
  for (const file of readdirSync(asIs)) copyFileSync(join(asIs, file), join(target, file));
}
