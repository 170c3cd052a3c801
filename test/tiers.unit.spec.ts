import { execFile } from 'node:child_process';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

interface NightPart {
  nightOnly?: string[];
  long?: string[];
}

const root = resolve(import.meta.dirname, '..');
const run = promisify(execFile);

/** Returns the Jest projects that each npm script names. The project `night` belongs to `npm run test:night`. */
async function projectsOf(script: string): Promise<string[]> {
  const { scripts } = JSON.parse(await readFile('package.json', 'utf8')) as { scripts: Record<string, string> };
  const [, projects] = /--selectProjects ((?:\w+ )+)--/.exec(scripts[script]!)!;
  return projects!.trim().split(' ');
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
    folders.map(async (folder) => (await readdir(folder, { recursive: true })).map((name) => join(root, folder, name))),
  );
  return names.flat().filter((name) => /\.spec\.tsx?$/.test(name) && !name.includes('node_modules'));
}

/** Jest cannot import an ES module without a build step, so Node prints the table. */
async function nightParts(): Promise<NightPart[]> {
  const print = `import('./scripts/night-parts.mjs').then(({ NIGHT_PARTS }) => console.log(JSON.stringify(NIGHT_PARTS)))`;
  const { stdout } = await run(process.execPath, ['-e', print], { cwd: root });
  return Object.values(JSON.parse(stdout) as Record<string, NightPart>);
}

it('runs each spec file in exactly one Jest project', async () => {
  const projects = [...(await projectsOf('test')), ...(await projectsOf('test:all')), 'night'];
  const files = await Promise.all(projects.map(specFilesOfProject));
  expect(files.flat().toSorted()).toEqual((await allSpecFiles()).toSorted());
});

it('runs each spec file that has a long form, and no other file twice, at night', async () => {
  const parts = await nightParts();
  const files = await allSpecFiles();
  const matching = (patterns: string[]): string[] =>
    files.filter((file) => patterns.some((pattern) => new RegExp(pattern).test(file)));
  const night = parts.flatMap(({ nightOnly = [], long = [] }) => matching([...nightOnly, ...long]));
  expect(night).toEqual([...new Set(night)]);
  const isLong = await Promise.all(
    files.map(async (file) =>
      /\bisLong\b|SPOOL_LONG|\brandomRuns\(|\bmeasureTurns\(|\b(isNight|nightTest)\b/.test(
        await readFile(file, 'utf8'),
      ),
    ),
  );
  expect(files.filter((file, i) => isLong[i] && !night.includes(file) && file !== import.meta.filename)).toEqual([]);
  const patterns = parts.flatMap(({ nightOnly = [], long = [] }) => [...nightOnly, ...long]);
  expect(patterns.filter((pattern) => matching([pattern]).length === 0)).toEqual([]);
});
