import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const PARSER = resolve('node_modules/eventsource-parser');

/** A folder of an application that has installed the package: packed, and beside its dependency. */
export class ClientPackage {
  private constructor(readonly folder: string) {}

  static async install(): Promise<ClientPackage> {
    const folder = await mkdtemp(join(tmpdir(), 'spool-package-'));
    const modules = join(folder, 'node_modules');
    const target = join(modules, '@spool/client');
    await mkdir(target, { recursive: true });
    const pack = ['pack', '--silent', '--pack-destination', folder];
    const { stdout } = await run('npm', pack, { cwd: resolve('dist/client') });
    await run('tar', ['-xzf', join(folder, stdout.trim()), '-C', target, '--strip-components=1']);
    await symlink(PARSER, join(modules, 'eventsource-parser'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    return new ClientPackage(folder);
  }

  /** Writes a program of a user of the package, and returns its path. */
  async write(file: string, program: string): Promise<string> {
    const path = join(this.folder, file);
    await writeFile(path, program);
    return path;
  }

  /** Returns the text of a module with all that it imports, minified for a browser. React is as the page has it. */
  async bundle(program: string, external: readonly string[] = []): Promise<string> {
    const input = await this.write('bundled.mjs', program);
    const output = join(this.folder, 'bundle.js');
    await run(process.execPath, [resolve('test/support/bundle.mjs'), input, output, ...external]);
    return readFile(output, 'utf8');
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}
