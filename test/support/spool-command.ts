import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface SpoolResult {
  code: number | null;
  out: string;
  err: string;
}

export interface SpoolOptions {
  env?: Record<string, string>;
  /** On standard input, which is no terminal. */
  input?: string;
  /** Called with what has been written to standard output so far, at each piece; `interrupt` is one Ctrl-C, however often it is called. */
  onOutput?: (out: string, interrupt: () => void) => void;
  /** The same of standard error. */
  onError?: (err: string, interrupt: () => void) => void;
}

const MAIN = join(import.meta.dirname, '../../dist/apps/cli/main.js').replace('/dist/dist/', '/dist/');

/** `spool` as operators and scripts run it, with all that it has said to anybody. */
export class SpoolCommand {
  /** Standard error and arguments, as the list of processes shows them, of all calls. */
  readonly said: string[] = [];

  /** `main`: the built CLI. Default: that of this release. */
  constructor(
    private readonly env: Record<string, string>,
    private readonly main = MAIN,
  ) {}

  run(args: string[], { env = {}, input = '', onOutput, onError }: SpoolOptions = {}): Promise<SpoolResult> {
    const { PATH, HOME } = process.env;
    const child = spawn(process.execPath, [this.main, ...args], { env: { PATH, HOME, ...this.env, ...env } });
    this.said.push(readFileSync(`/proc/${child.pid}/cmdline`, 'utf8'));
    let [out, err] = ['', ''];
    let interrupted = false; // a second signal would end the process as it stands
    const interrupt = (): void => {
      if (!interrupted) interrupted = child.kill('SIGINT');
    };
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
      onOutput?.(out, interrupt);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
      onError?.(err, interrupt);
    });
    child.stdin.on('error', () => undefined); // one that refuses its arguments does not read
    child.stdin.end(input);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => {
        this.said.push(err);
        resolve({ code, out, err });
      });
    });
  }

  /** What a command that does what it should prints; with `--json` parsed. */
  async json<T>(...args: string[]): Promise<T> {
    const { code, out, err } = await this.run([...args, '--json']);
    if (code !== 0) throw new Error(`spool ${args.join(' ')} ended with ${code}: ${err}${out}`);
    return JSON.parse(out) as T;
  }
}
