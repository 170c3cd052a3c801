import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const read = (file: string): string => readFileSync(join(import.meta.dirname, '..', file), 'utf8');

/** Returns the major versions that scripts/platforms.mjs lists under this name. */
function testedVersions(name: string): number[] {
  const list = new RegExp(`const ${name} = \\{(.*)\\}`).exec(read('scripts/platforms.mjs'))![1]!;
  return [...list.matchAll(/(\d+): '(\d+)\./g)].map(([, major, version]) => {
    expect(version).toBe(major);
    return Number(major);
  });
}

it('explains each override in CONTRIBUTING.md', () => {
  const { overrides } = JSON.parse(read('package.json')) as { overrides: Record<string, string | object> };
  const names = Object.entries(overrides).flatMap(([name, version]) =>
    typeof version === 'string' ? [name] : Object.keys(version).map((inner) => `${name} > ${inner}`),
  );
  const section = /^`overrides` in package\.json:\n([\s\S]*?)\n\n(?!\|)/m.exec(read('CONTRIBUTING.md'))![1]!;
  const explained = [...section.matchAll(/^\| `([^`]+)` \| \S/gm)].map(([, name]) => name);
  expect(explained).toEqual(names);
});

it('builds the container image on a tested Node version', () => {
  const images = [...read('docker/Dockerfile').matchAll(/^FROM node:(\d+)-/gm)].map(([, major]) => Number(major));
  expect(new Set(images)).toEqual(new Set([24]));
  expect(testedVersions('nodeVersions')).toContain(24);
});

it('tests the oldest and the newest PostgreSQL version of the documents', () => {
  const [oldest, newest] = testedVersions('postgresVersions');
  for (const page of ['docs/operations/postgresql.md', '.env.example'])
    expect(read(page)).toContain(`PostgreSQL ${oldest} to ${newest}`);
});

it('runs each version of scripts/platforms.mjs in .ci/run or at night', () => {
  const loops = [...read('.ci/run').matchAll(/^for version in (.*); do$/gm)].map(([, list]) => list);
  expect(loops).toEqual([testedVersions('postgresVersions').join(' ')]);
  const nodes = testedVersions('nodeVersions').filter(
    (version) =>
      !read('.ci/run').includes(`test:node -- ${version}`) &&
      !read('scripts/night-parts.mjs').includes(`args: ['${version}'`),
  );
  expect(nodes).toEqual([]);
});
