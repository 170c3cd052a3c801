import { stdin, stdout } from 'node:process';
import { createInterface, type Interface } from 'node:readline';
import { Writable } from 'node:stream';

export interface Line {
  text: string;
  /** The id of the question that the prompt showed when Enter was pressed; null if it asked for a message. */
  askedId: string | null;
  /** Whether the whole text is on the screen. */
  wasShown: boolean;
}

export interface ScreenEvents {
  line(line: Line): void;
  interrupt(): void;
  close(): void;
}

/** A terminal with output above a prompt. Uses standard input and output. */
export class Screen {
  private isHidden = true;
  private prompt = '';
  private askedId: string | null = null;
  /** The unfinished message, while the prompt asks a question. */
  private draft = '';
  private readonly lines: Interface;

  constructor(events: ScreenEvents) {
    this.lines = createInterface({ input: stdin, output: this.openOutput(), terminal: true });
    readPasted(this.lines, events, () => this.submit());
    this.lines.on('SIGINT', () => events.interrupt());
    this.lines.on('close', () => events.close());
  }

  write(text: string): void {
    if (text === '') return;
    const wasHidden = this.isHidden;
    this.erase();
    stdout.write(text);
    if (!wasHidden) this.show();
  }

  /** Shows a prompt. `id` is the question that it asks; null if it asks for a message. */
  ask(prompt: string, id: string | null): void {
    this.changeSubject(id);
    if (!this.isHidden && prompt === this.prompt) return;
    this.erase();
    this.prompt = prompt;
    this.show();
  }

  /** Hides the prompt. Text that is typed meanwhile appears with the next prompt for a message. */
  hide(): void {
    this.erase();
    this.changeSubject(null);
  }

  close(): void {
    this.erase();
    this.lines.close();
  }

  /** Returns the output of readline. It drops everything while the prompt is hidden. */
  private openOutput(): Writable {
    const output = new Writable({
      write: (chunk: Uint8Array, _encoding, done) => {
        if (!this.isHidden) stdout.write(chunk);
        done();
      },
    });
    Object.defineProperty(output, 'columns', { get: () => stdout.columns });
    stdout.on('resize', () => output.emit('resize'));
    return output;
  }

  private submit(): Omit<Line, 'text'> {
    const wasShown = !this.isHidden;
    this.isHidden = true;
    return { askedId: this.askedId, wasShown };
  }

  private show(): void {
    this.isHidden = false;
    // A line that was typed while the prompt was hidden took no rows. Without this, readline would move up by its rows.
    (this.lines as unknown as { prevRows: number }).prevRows = 0;
    this.lines.setPrompt(this.prompt);
    this.lines.prompt(true);
  }

  private erase(): void {
    if (this.isHidden) return;
    const { rows } = this.lines.getCursorPos();
    stdout.write(`${rows > 0 ? `\u001b[${rows}A` : ''}\r\u001b[J`);
    this.isHidden = true;
  }

  /** Clears the input line and keeps an unfinished message. A reply must not count for another question, nor a message as a reply. */
  private changeSubject(id: string | null): void {
    if (id === this.askedId) return;
    this.erase();
    if (this.askedId === null) this.draft = this.lines.line;
    this.lines.write(null, { ctrl: true, name: 'e' });
    this.lines.write(null, { ctrl: true, name: 'u' });
    if (id === null) this.lines.write(this.draft);
    this.askedId = id;
  }
}

/** Joins lines that arrive together to one text, because they were pasted. */
function readPasted(lines: Interface, events: ScreenEvents, onEnter: () => Omit<Line, 'text'>): void {
  let pasted: string[] = [];
  lines.on('line', (text) => {
    const { askedId, wasShown } = onEnter();
    pasted.push(text);
    if (pasted.length > 1) return;
    setImmediate(() => {
      const all = pasted;
      pasted = [];
      events.line({ text: all.join('\n'), askedId, wasShown: wasShown && all.length === 1 });
    });
  });
}
