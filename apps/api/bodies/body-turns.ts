import type { ServerResponse } from 'node:http';
import { getHeapStatistics } from 'node:v8';
import { ByteBudget } from '#platform';
import { bodiesFull } from '../http/http-errors.ts';
import { LARGE_BYTES } from './parse-body.ts';
import { bodyCutOff } from './read-body.ts';

/**
 * Bytes of memory for each byte of a large body until it is answered: the body, the result of the task pool, texts, JSON and
 * buffers for the database. A text with a character beyond Latin-1 takes two bytes a character. Measured: docs/adr/0024.
 */
const BYTES_PER_BODY_BYTE = 8;

/** How long a body waits for its turn, milliseconds. A body of 8 MiB takes about a second. */
export const LONGEST_WAIT_MS = 20_000;

/** A turn ends after this time in any case, milliseconds. */
const LONGEST_TURN_MS = 60_000;

/** Returns this part of V8's heap limit, so that a process with little memory has a smaller budget. Bytes. */
export const heapPart = (divisor: number): number => Math.floor(getHeapStatistics().heap_size_limit / divisor);

/** Limits how many large bodies are handled in parallel, by the memory that they grow to. */
export class BodyTurns {
  private readonly budget: ByteBudget;

  constructor(percentPerOrganization: number, process = heapPart(2)) {
    const share = Math.floor((process * percentPerOrganization) / 100);
    this.budget = new ByteBudget({ process, share, small: LARGE_BYTES * BYTES_PER_BODY_BYTE });
  }

  /**
   * Waits for the turn of a received body. The turn ends when the request is answered, even if the client has disconnected,
   * because its work continues. Throws ApiError if the turn does not come in time.
   */
  async take(owner: string, bytes: number, response: ServerResponse): Promise<void> {
    const waiting = new AbortController();
    const giveUp = (): void => waiting.abort();
    const { socket } = response.req;
    if (socket.destroyed) throw bodyCutOff();
    const timer = setTimeout(giveUp, LONGEST_WAIT_MS).unref();
    socket.once('close', giveUp);
    try {
      const hold = await this.budget.reserve(owner, bytes * BYTES_PER_BODY_BYTE, waiting.signal);
      const overdue = setTimeout(() => hold.release(), LONGEST_TURN_MS).unref();
      onAnswered(response, () => {
        clearTimeout(overdue);
        hold.release();
      });
    } catch {
      throw bodiesFull();
    } finally {
      clearTimeout(timer);
      socket.off('close', giveUp);
    }
  }
}

/** Calls `done` when the answer is complete. It may never be sent, after an earlier answer or on a closed connection. */
function onAnswered(response: ServerResponse, done: () => void): void {
  const end = response.end.bind(response) as (...args: unknown[]) => ServerResponse;
  response.end = (...args: unknown[]) => {
    done();
    return end(...args);
  };
}
