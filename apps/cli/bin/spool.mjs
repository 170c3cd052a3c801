#!/usr/bin/env node
// npm links a `bin` only to a file that exists when it installs; dist/ does not exist then, so this file stands in.
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const main = new URL('../../../dist/apps/cli/main.js', import.meta.url);
if (!existsSync(fileURLToPath(main))) {
  console.error('spool is not built yet. Run this first: npm run build');
  process.exit(1);
}
process.setSourceMapsEnabled(true);
await import(main.href);
