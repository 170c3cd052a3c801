/**
 * Bundles each entry point with everything that it imports, including packages. Loading a few large files takes less than
 * half the CPU of loading two thousand small ones (docs/adr/0020-bundled-processes.md).
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { rolldown, RolldownMagicString } from 'rolldown';

const root = dirname(import.meta.dirname);
const target = join(root, 'dist/apps');
const apps = ['api', 'cli', 'standalone', 'worker'];
const libs = readdirSync(join(root, 'libs'));

/** Packages outside the bundles: unused optional ones, and TypeORM, which loads its drivers by name and only for migrations. */
const external = [
  'typeorm',
  'pg-native',
  'class-transformer',
  'class-validator',
  '@nestjs/microservices',
  '@nestjs/microservices/microservices-module.js',
  '@nestjs/platform-express',
  '@nestjs/websockets/socket-module.js',
];

/** Keeps the value of `import.meta.dirname` as in the output of tsc. Bundles and chunks are two folders below dist/. */
const keepDirnames = {
  name: 'keep-dirnames',
  transform: {
    filter: { id: /\.ts$/, code: 'import.meta.dirname' },
    handler(code, id) {
      const folder = JSON.stringify(`../../${relative(root, dirname(id))}`);
      const text = new RolldownMagicString(code);
      text.replaceAll('import.meta.dirname', `process.getBuiltinModule('path').join(import.meta.dirname, ${folder})`);
      return { code: text.toString(), map: text.generateMap({ hires: true, source: id }).toString() };
    },
  },
};

/** Puts the text of every SQL file into the bundle, by replacing the module that reads them. */
const inlineSql = {
  name: 'inline-sql',
  load: {
    filter: { id: /[\\/]libs[\\/]platform[\\/]postgres[\\/]read-sql\.ts$/ },
    handler() {
      const texts = Object.fromEntries(sqlFiles().map((path) => [relative(root, path), readFileSync(path, 'utf8')]));
      return `
        import { basename, dirname, join, relative } from 'node:path';
        const dist = join(import.meta.dirname, '../../..');
        const texts = new Map(Object.entries(${JSON.stringify(texts)}));
        export function readSql(directory, fileName) {
          const path = relative(dist, join(directory, fileName));
          const text = texts.get(path);
          if (text === undefined) throw new Error('The bundle does not contain ' + path + '; build again.');
          return text;
        }
        export function listSql(directory) {
          const folder = relative(dist, directory);
          return [...texts.keys()].filter((path) => dirname(path) === folder).map((path) => basename(path)).toSorted();
        }`;
    },
  },
};

const sqlFiles = () =>
  ['apps', 'libs']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true }).map((name) => join(root, folder, name)))
    .filter((path) => path.endsWith('.sql'));

/** Leaves out the source maps of packages. Node reads the map of every loaded file, and those of packages are 20 times as large. */
const leaveOutMapsOfPackages = {
  name: 'leave-out-maps-of-packages',
  transform: { filter: { id: /[\\/]node_modules[\\/]/ }, handler: (code) => ({ code, map: { mappings: '' } }) },
};

/** Leaves out `glob`. `@fastify/static` needs it only with `wildcard: false`, and loading it takes 4 % of the start of a process. */
const leaveOutGlob = {
  name: 'leave-out-glob',
  load: {
    filter: { id: /[\\/]node_modules[\\/]glob[\\/]/ },
    handler: () => `export function glob() { throw new Error('The bundle does not contain glob.'); }`,
  },
};

/**
 * Bundles the lease thread with its imports, because a thread shares no module with its process and must load little. Writes
 * the file to the place that tsc would use.
 */
const leaseThread = 'libs/run-engine/lease-thread-worker.mjs';

async function bundleLeaseThread() {
  const bundled = await rolldown({ cwd: root, platform: 'node', input: leaseThread, external });
  const { output } = await bundled.generate({ format: 'esm', codeSplitting: false });
  await bundled.close();
  return { path: join(root, 'dist', leaseThread), code: output[0].code };
}

/** Bundles in memory. Returns a function that writes the files. */
export async function bundle() {
  const thread = await bundleLeaseThread();
  const bundled = await rolldown({
    cwd: root,
    platform: 'node',
    tsconfig: 'tsconfig.json',
    input: Object.fromEntries(apps.map((app) => [`${app}/main`, `apps/${app}/main.ts`])),
    resolve: { alias: Object.fromEntries(libs.map((lib) => [`#${lib}`, join(root, 'libs', lib, 'index.ts')])) },
    external,
    plugins: [keepDirnames, inlineSql, leaveOutMapsOfPackages, leaveOutGlob],
    onLog(level, log, print) {
      // Bull Board uses eval to find its page. This does not matter, because Spool passes it the path.
      const isKnown = log.code === 'EVAL' && log.message.includes('@bull-board/api');
      if (level === 'warn' && !isKnown) throw new Error(log.message);
      if (!isKnown) print(level, log);
    },
  });
  const { output } = await bundled.generate({
    dir: target, // Source maps name the sources from here.
    format: 'esm',
    chunkFileNames: 'chunks/[name]-[hash].js',
    sourcemap: true,
    sourcemapExcludeSources: true,
    // Logged errors contain class names.
    keepNames: true,
  });
  await bundled.close();
  return () => {
    mkdirSync(dirname(thread.path), { recursive: true });
    writeFileSync(thread.path, thread.code);
    for (const file of output) {
      const path = join(target, file.fileName);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, file.type === 'chunk' ? file.code : contentOfAsset(file));
    }
  };
}

const contentOfAsset = ({ fileName, source }) => (fileName.endsWith('.map') ? endMappings(source) : source);

/**
 * Ends the mapping before each line that has none. Otherwise Node gives a frame of a package the nearest earlier mapping, which
 * names a source of ours. `A` is a segment that maps column 0 to nothing.
 */
function endMappings(source) {
  const map = JSON.parse(source);
  const lines = map.mappings.split(';');
  map.mappings = lines.map((line, i) => (line === '' && lines[i - 1] ? 'A' : line)).join(';') + ';A';
  return JSON.stringify(map);
}
