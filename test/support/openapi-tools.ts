import { execFile, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MANIFEST = resolve('test/docs/openapi-tools');
const FILES = ['package.json', 'package-lock.json'];
/** Some of the tools need Node 22. */
const NODE_MAJOR = '24';

/** Client generators and linters. They are not dependencies of Spool, because they would double the time of `npm ci`. */
export interface OpenApiTools {
  /** The folder to link as `node_modules`. */
  modules: string;
  /** Runs a program that the packages or Node bring, such as `tsc` or `npx`. Rejects if it fails. */
  run(cwd: string, command: string, args: readonly string[], env?: Record<string, string>): Promise<string>;
}

/** Installs the locked versions below .cache/ at first use, as scripts/platforms.mjs does with Node. */
export function installOpenApiTools(): OpenApiTools {
  const texts = FILES.map((file) => readFileSync(join(MANIFEST, file)));
  const hash = createHash('sha256').update(Buffer.concat(texts)).digest('hex').slice(0, 12);
  const folder = resolve('.cache', `openapi-tools-${hash}`);
  const modules = join(folder, 'node_modules');
  // npm writes this file last.
  if (!existsSync(join(modules, '.package-lock.json'))) {
    mkdirSync(folder, { recursive: true });
    for (const file of FILES) cpSync(join(MANIFEST, file), join(folder, file));
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'];
    const { status, stderr } = spawnSync('npm', ['ci', ...flags], { cwd: folder, encoding: 'utf8' });
    if (status !== 0) throw new Error(`npm could not install the OpenAPI tools: ${stderr}`);
  }
  const PATH = [join(modules, '.bin'), nodeFolder(), process.env['PATH']].join(delimiter);
  return {
    modules,
    run: async (cwd, command, args, env = {}) => {
      const quiet = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true', NO_COLOR: '1' };
      const options = { cwd, env: { PATH, HOME: process.env['HOME'], ...quiet, ...env }, maxBuffer: 2 ** 26 };
      const done = run(command, args, options);
      return done.then(
        ({ stdout }) => stdout,
        (error: Error & { stdout: string }) => Promise.reject(new Error(`${error.message}\n${error.stdout}`)),
      );
    },
  };
}

/** Returns the folder of a Node that the tools run on: the current one if it is new enough. */
function nodeFolder(): string {
  if (Number.parseInt(process.versions.node) >= 22) return join(process.execPath, '..');
  const script = `import { nodeFolder } from './scripts/platforms.mjs'; console.log(nodeFolder('${NODE_MAJOR}'));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  if (stdout === '') throw new Error(`Node ${NODE_MAJOR} is missing: ${stderr}`);
  return stdout.trim();
}
