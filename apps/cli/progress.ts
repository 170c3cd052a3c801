/** Tells on standard error how far a long command is; standard output is for its result. */
export interface Progress {
  report(text: string): void;
  /** What comes next is the result, which says it all. */
  end(): void;
}

/** A terminal's line is written over; a log gets a line every few seconds. */
const TERMINAL_EVERY_MS = 100;
const LOG_EVERY_MS = 5_000;

export function showProgress(stream: NodeJS.WritableStream & { isTTY?: boolean }): Progress {
  let saidAt = -Infinity;
  const say = (text: string): void => void stream.write(stream.isTTY ? `\r\u001b[K${text}` : `${text}\n`);
  return {
    report(text) {
      const now = performance.now();
      if (now - saidAt < (stream.isTTY ? TERMINAL_EVERY_MS : LOG_EVERY_MS)) return;
      saidAt = now;
      say(text);
    },
    end() {
      if (stream.isTTY) say('');
    },
  };
}
