import type { AdminOperationName } from '#contract';
import type { AdminClient, AnswerOf, CallOf, FileOperation } from './admin-client.ts';
import type { Options } from './options.ts';
import { CommandError, EXIT, EXIT_INTERRUPTED } from './exit-codes.ts';
import { showProgress, type Progress } from './progress.ts';
import { ask, canAsk } from './prompt.ts';
import { maskTokens } from './secrets.ts';
import { renderTable, type Column } from './table.ts';
import { showControls } from './text.ts';

/** The output streams of a command. Tests pass their own. */
export interface Streams {
  out: NodeJS.WritableStream & { isTTY?: boolean; columns?: number };
  err: NodeJS.WritableStream & { isTTY?: boolean };
}

export interface SessionParts extends Streams {
  /** Options of the command and of all commands. */
  options: Options;
  /** Called before the first operation. */
  openClient: () => Promise<AdminClient>;
}

/** The options that limit how much of a list is read. */
export interface Paging extends Options {
  all?: boolean;
  limit?: string;
}

/** One call of `spool`: results go to standard output, progress, notes and questions to standard error. */
export class Session {
  exitCode: number = EXIT.done;
  readonly json: boolean;
  private opening: Promise<AdminClient> | undefined;

  constructor(private readonly parts: SessionParts) {
    this.json = parts.options['json'] === true;
  }

  async call<N extends AdminOperationName>(name: N, input?: CallOf<N>): Promise<AnswerOf<N>> {
    return (await this.client()).call(name, input);
  }

  /** Returns the URL of the service's Agent Threads API. Throws CommandError with `--local`. */
  async apiUrl(): Promise<string> {
    const { apiUrl } = await this.client();
    if (apiUrl === undefined) throw new CommandError('usage', 'This needs the service; run it without --local.');
    return apiUrl;
  }

  /** Whether a person can type input and read the output. */
  get isTerminal(): boolean {
    return this.parts.out.isTTY === true && process.stdin.isTTY;
  }

  /** Yields the lines of an operation. Ctrl+C ends it without an error and sets `interrupted`. A second Ctrl+C ends the process. */
  async *lines<N extends AdminOperationName>(name: N, input?: CallOf<N>): AsyncGenerator<AnswerOf<N>, void, undefined> {
    const client = await this.client();
    const { signal, end } = this.listenForInterrupt();
    try {
      yield* client.lines(name, input, signal);
    } catch (error) {
      if (!this.interrupted) throw error;
    } finally {
      end();
    }
  }

  /** Returns the result of the work; undefined if Ctrl+C ended it. */
  async interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T | undefined> {
    const { signal, end } = this.listenForInterrupt();
    try {
      return await work(signal);
    } catch (error) {
      if (!this.interrupted) throw error;
      return undefined;
    } finally {
      end();
    }
  }

  private listenForInterrupt(): { signal: AbortSignal; end: () => void } {
    const abort = new AbortController();
    const stop = (): void => {
      this.exitCode = EXIT_INTERRUPTED;
      abort.abort();
    };
    process.once('SIGINT', stop);
    return { signal: abort.signal, end: () => process.off('SIGINT', stop) };
  }

  async *bytes(name: FileOperation, input: CallOf<FileOperation>): AsyncGenerator<Uint8Array, void, undefined> {
    yield* (await this.client()).bytes(name, input);
  }

  get interrupted(): boolean {
    return this.exitCode === EXIT_INTERRUPTED;
  }

  /** Sets the exit code of a check that found a problem. The result describes the problem. */
  found(): void {
    if (!this.interrupted) this.exitCode = EXIT.failed;
  }

  /** Writes the result: JSON with `--json`, else text. */
  async print(json: unknown, text: string): Promise<void> {
    await this.write(this.json ? `${JSON.stringify(json, null, 2)}\n` : `${text}\n`);
  }

  /** Writes to standard output. Waits if the reader is slow. */
  async write(text: string | Uint8Array): Promise<void> {
    const { out } = this.parts;
    if (!out.write(text)) await new Promise<void>((resolve) => out.once('drain', resolve));
  }

  table<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): string {
    const { isTTY, columns: width } = this.parts.out;
    const { text, leftOut } = renderTable(columns, rows, isTTY ? (width ?? 80) : Infinity);
    if (leftOut.length > 0) this.note(`Hidden columns: ${leftOut.join(', ')}. Use a wider terminal or --json.`);
    return text;
  }

  /** Prints a page of a list, or all pages with `--all`. */
  async printPages<Row>(
    { all = false, limit }: Paging,
    columns: readonly Column<Row>[],
    read: (page: { cursor?: string; limit?: string }) => Promise<{ rows: readonly Row[]; next: string | null }>,
  ): Promise<void> {
    const rows: Row[] = [];
    let next: string | null = null;
    do {
      const page = await read({
        ...(limit === undefined ? {} : { limit }),
        ...(next === null ? {} : { cursor: next }),
      });
      rows.push(...page.rows);
      next = page.next;
    } while (all && next !== null);
    await this.print(rows, rows.length === 0 ? 'No results.' : this.table(columns, rows));
    if (next !== null) this.note('There are more; pass --all to list them all.');
  }

  note(text: string): void {
    this.parts.err.write(`${maskTokens(showControls(text))}\n`);
  }

  /** Asks for confirmation, unless `--yes` is set. Throws CommandError if there is no terminal, or the reply is no. */
  async confirm(question: string): Promise<void> {
    if (this.parts.options['yes'] === true) return;
    if (!canAsk()) throw new CommandError('usage', `${question} Not a terminal; pass --yes to confirm.`);
    if (!(await ask(showControls(question)))) throw new CommandError('failed', 'Nothing was changed.');
  }

  progress(): Progress {
    return showProgress(this.parts.err);
  }

  /** Whether the output may have colours (https://no-color.org). */
  get coloured(): boolean {
    return this.parts.out.isTTY === true && !process.env['NO_COLOR'];
  }

  async close(): Promise<void> {
    // The caller of the operation has already got this error.
    const client = await this.opening?.catch(() => undefined);
    await client?.close();
  }

  private client(): Promise<AdminClient> {
    return (this.opening ??= this.parts.openClient());
  }
}
