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

async function nightParts(): Promise<Record<string, NightPart>> {
  const table = (await import(join(root, 'scripts/night-parts.mjs'))) as { NIGHT_PARTS: Record<string, NightPart> };
  return table.NIGHT_PARTS;
}

it('runs each spec file in exactly one Jest project', async () => {
  const projects = [...(await projectsOf('test')), ...(await projectsOf('test:all')), 'night'];
  const files = await Promise.all(projects.map(specFilesOfProject));
  expect(files.flat().toSorted()).toEqual((await allSpecFiles()).toSorted());
});

it('runs each spec file that has a long form, and no other file twice, at night', async () => {
  const parts = Object.values(await nightParts());
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

it('runs what docs/reliability.md names in the gate, and at night', async () => {
  const page = await readFile(join(root, 'docs/reliability.md'), 'utf8');
  const parts = await nightParts();
  const nightOnly = Object.values(parts).flatMap((part) => part.nightOnly ?? []);
  const gate = (await allSpecFiles()).filter((file) => !nightOnly.some((pattern) => new RegExp(pattern).test(file)));
  const lines = page.slice(0, page.indexOf('## Results of the night')).split('\n');
  const rows = lines.filter((line) => line.endsWith(' |')).map((line) => line.split(' | ').slice(-2));
  const named = (cells: (string | undefined)[]): string[] =>
    cells.flatMap((cell) => [...cell!.matchAll(/`([^`]+)`/g)].map(([, name]) => name!));
  const specs = named(rows.map(([spec]) => spec));
  expect(specs.length).toBeGreaterThan(40);
  expect(specs.filter((spec) => !gate.includes(join(root, spec)))).toEqual([]);
  const notParts = named(rows.map(([, night]) => night)).filter((name) => !(name in parts));
  expect(notParts).toEqual(['npm run bench -- long-run']);
});
