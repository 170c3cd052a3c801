/** Bundles a module for a browser: `node bundle.mjs <input> <output> [<external package>…]`. */
import { join } from 'node:path';
import { rolldown } from 'rolldown';

const [, , input, file, ...external] = process.argv;
const bundle = await rolldown({
  input,
  external,
  platform: 'browser',
  resolve: { modules: ['node_modules', join(import.meta.dirname, '../../node_modules')] },
  transform: { define: { 'process.env.NODE_ENV': '"development"' } },
});
await bundle.write({ file, minify: true, codeSplitting: false });
