import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Returns the spec files that this npm script runs. A file that two of its Jest projects run is listed twice. */
async function specFilesOf(script: string): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: Record<string, string> };
  const [, projects] = /--selectProjects ((?:\w+ )+)--/.exec(scripts[script]!)!;
  return (await Promise.all(projects!.trim().split(' ').map(specFilesOfProject))).flat();
}

async function specFilesOfProject(project: string): Promise<string[]> {
  const args = ['--selectProjects', project, '--no-watchman', '--listTests', '--json'];
  const jest = join('node_modules', 'jest', 'bin', 'jest.js');
  const { stdout } = await run(process.execPath, [jest, ...args], { maxBuffer: 16 * 1024 * 1024 });
  return JSON.parse(stdout) as string[];
}

async function allSpecFiles(): Promise<string[]> {
  const folders = ['apps', 'libs', 'test', 'bench'];
  const names = await Promise.all(
    folders.map(async (folder) => (await readdir(folder, { recursive: true })).map((name) => join(folder, name))),
  );
  return names.flat().filter((name) => /\.spec\.tsx?$/.test(name) && !name.includes('node_modules'));
}

it('runs each spec file in exactly one of `npm test` and `npm run test:all`', async () => {
  const [quick, rest, all] = await Promise.all([specFilesOf('test'), specFilesOf('test:all'), allSpecFiles()]);
  expect([...quick, ...rest].toSorted()).toEqual(all.map((name) => resolve(name)).toSorted());
});

it('leaves faults, console, fuzzing, operations, docs and benchmarks to `npm run test:all`', async () => {
  const [rest, all] = await Promise.all([specFilesOf('test:all'), allSpecFiles()]);
  const slow = /^(test\/(faults|console|fuzzing|operations|docs)|bench)\/.*\.e2e\.spec\.ts$|\.(fault|fuzz)\.spec\.ts$/;
  const names = rest.map((name) => relative('.', name));
  expect(names.toSorted()).toEqual(all.filter((name) => slow.test(name)).toSorted());
});
