import { spawn, spawnSync } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { eventually } from '#testing';

// Only the `script` of util-linux can give a program a terminal with these options.
const HAS_SCRIPT = spawnSync('script', ['--version']).stdout?.includes('util-linux') === true;

/** Runs the suite if `script` of util-linux is installed. Else skips it and says so. */
export function describeOnTerminal(name: string, suite: () => void): void {
  if (!HAS_SCRIPT) process.stderr.write(`SKIPPED: ${name}: needs the program script of util-linux.\n`);
  (HAS_SCRIPT ? describe : describe.skip)(name, suite);
}

/** A program on a pseudo-terminal. */
export class Terminal {
  /** The complete output, with colours. */
  raw = '';
  /** Where `waitFor` continues. */
  private from = 0;
  private readonly child;
  readonly exited: Promise<number | null>;

  constructor(command: readonly string[], env: Record<string, string>) {
    const line = command.map((word) => `'${word}'`).join(' ');
    this.child = spawn('script', ['-qec', line, '/dev/null'], { env: { PATH: process.env['PATH'], ...env } });
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => (this.raw += text));
    this.exited = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', resolve);
    });
  }

  get text(): string {
    return stripVTControlCharacters(this.raw).replaceAll('\r', '');
  }

  /** Waits for a text after the one that was found last. Returns the output up to its end. */
  waitFor(text: string): Promise<string> {
    return this.find(text, (shown) => shown.indexOf(text));
  }

  /** Waits until the output ends with the prompt, then types a line. */
  async enter(line: string, prompt = '> '): Promise<void> {
    await this.find(prompt, (shown) => (shown.endsWith(prompt) ? shown.length - prompt.length : -1));
    this.type(`${line}\r`);
  }

  private async find(text: string, indexIn: (shown: string) => number): Promise<string> {
    const { from } = this;
    const isThere = (): boolean => indexIn(this.text.slice(from)) !== -1;
    await eventually(isThere, { what: `the terminal shows ${text}`, timeoutMs: 30_000 }).catch((error: Error) => {
      throw new Error(`${error.message}\n${this.text.slice(from)}`);
    });
    this.from = from + indexIn(this.text.slice(from)) + text.length;
    return this.text.slice(from, this.from);
  }

  type(keys: string): void {
    this.child.stdin.write(keys);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}
