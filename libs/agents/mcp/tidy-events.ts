import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { BOUNDS } from '#domain';
import { ownTurn } from '#platform';
import { tidyMessage } from './message.ts';

const LONG_TEXT = BOUNDS.toolServers.tidied.value;

/** Passes server-sent events on with tidied messages (`tidyMessage`), also a last event without an empty line after it. */
export function tidyEvents(): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  const events = new EventText();
  const pass = async (text: string, controller: TransformStreamDefaultController<Uint8Array>): Promise<void> => {
    const tidy = events.take(text);
    // The SDK parses a message in the turn in which it gets it. The message was already parsed in this turn.
    if (tidy.length > LONG_TEXT) await ownTurn();
    if (tidy !== '') controller.enqueue(encoder.encode(tidy));
  };
  return new TransformStream<Uint8Array, Uint8Array>({
    transform: (piece, controller) => pass(decoder.decode(piece, { stream: true }), controller),
    flush: (controller) => pass(`${decoder.decode()}\n\n`, controller),
  });
}

class EventText {
  /** The chunks of the current line. They are joined only once, because a line may have megabytes. */
  private pieces: string[] = [];
  /** The data lines of the current event. */
  private data: string[] = [];
  private endedWithCr = false;

  /** Returns the lines that end in this chunk. Data lines come with the end of their event. */
  take(piece: string): string {
    if (piece === '') return '';
    let tidy = '';
    // The second character of a line end (CR LF).
    let from = this.endedWithCr && piece.startsWith('\n') ? 1 : 0;
    const rest = piece.slice(from);
    for (const { 0: end, index } of rest.matchAll(/\r\n|\n|\r/g)) {
      const at = index + piece.length - rest.length;
      this.pieces.push(piece.slice(from, at));
      // Emptied first, so that a long line is not in memory twice.
      tidy += this.takeLine(this.pieces.splice(0).join(''));
      from = at + end.length;
    }
    this.pieces.push(piece.slice(from));
    this.endedWithCr = piece.endsWith('\r');
    return tidy;
  }

  private takeLine(line: string): string {
    const [, data] = /^data(?:: ?([^]*))?$/.exec(line) ?? [];
    if (data !== undefined || line === 'data') {
      this.data.push(data ?? '');
      return '';
    }
    if (line !== '') return `${line}\n`;
    if (this.data.length === 0) return '\n';
    return `data: ${tidyText(this.data.splice(0).join('\n')).replaceAll('\n', '\ndata: ')}\n\n`;
  }
}

function tidyText(text: string): string {
  try {
    const value = JSON.parse(text.trim()) as unknown;
    const isKept = text.length > LONG_TEXT && JSONRPCMessageSchema.safeParse(value).success;
    return isKept ? text : JSON.stringify(tidyMessage(value));
  } catch {
    return text;
  }
}
