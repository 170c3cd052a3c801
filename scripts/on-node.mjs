/**
 * Runs Jest on another version of Node: `node scripts/on-node.mjs 24 [arguments of Jest]`. Processes that the
 * tests start also run on that version. Without arguments it runs the unit tests and the main flow.
 */
import { spawnSync } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { jestArguments, nodeFolder, root } from './platforms.mjs';

const [major, ...given] = process.argv.slice(2);
const folder = nodeFolder(major);
const node = join(folder, 'node');
const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
console.error(`Node ${stdout.trim()}`);

const usual = ['--selectProjects', 'unit', 'e2e', '--testPathPatterns', 'unit.spec', 'test/main-job'];
const { status } = spawnSync(node, jestArguments(given, usual), {
  cwd: root,
  stdio: 'inherit',
  env: { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}` },
});
process.exitCode = status ?? 1;
