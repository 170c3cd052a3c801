import type { ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ByteBudget, type ByteHold, type Config } from '#platform';
import type { TaskPool } from '#task-pool';
import { bodiesFull } from '../http/http-errors.ts';
import { networkOf } from '../http/limit-rate.ts';
import type { ArrivalLimits } from './arrival.ts';
import { BodyTurns, heapPart } from './body-turns.ts';
import { LARGE_BYTES, parseBody } from './parse-body.ts';
import { bodyCutOff, readBody } from './read-body.ts';
import { metrics } from '../metrics.ts';

/** The most memory that an upload holds: one part that is sent to S3 (libs/files/s3-upload.ts). Bytes. */
const UPLOAD_BYTES = 5 * 1024 * 1024;

const MEBIBYTE = 1024 * 1024;

/** Bodies up to this size are not counted, so they always find room. Headers, which are not counted either, may be as large. */
export const SMALL_BYTES = 16 * 1024;

type Settings = Pick<
  Config,
  | 'BODY_BUDGET_BYTES'
  | 'BODY_BUDGET_PERCENT_PER_ORGANIZATION'
  | 'BODY_LIMIT_BYTES'
  | 'BODY_TIMEOUT_MS'
  | 'BODY_MS_PER_MIB'
  | 'BODY_BYTES_PER_SECOND'
  | 'BODY_RATE_WINDOW_MS'
>;

/** Admits, reads and parses the bodies of requests (docs/adr/0024). */
export class BodyIntake {
  private readonly budget: ByteBudget;
  private readonly turns: BodyTurns;
  private readonly responses = new WeakMap<FastifyRequest, ServerResponse>();

  constructor(
    private readonly settings: Settings,
    private readonly pool: TaskPool,
  ) {
    const { BODY_BUDGET_BYTES: wanted, BODY_BUDGET_PERCENT_PER_ORGANIZATION: percent, BODY_LIMIT_BYTES } = settings;
    // A body of the largest size must fit while no other body is in flight.
    const process = Math.max(Math.min(wanted, heapPart(8)), BODY_LIMIT_BYTES, UPLOAD_BYTES);
    const share = Math.max(Math.floor((process * percent) / 100), BODY_LIMIT_BYTES, UPLOAD_BYTES);
    this.budget = new ByteBudget({ process, share, small: SMALL_BYTES }, (bytes) => metrics.bodyBytes.set(bytes));
    this.turns = new BodyTurns(percent);
  }

  /** Opens the hold of a request with a body until it is answered or its connection closes. Throws ApiError if it has closed. */
  open(request: FastifyRequest, { raw }: FastifyReply): void {
    const { socket } = request.raw;
    // Closed streams do not emit 'close' again.
    if (raw.destroyed || request.raw.destroyed || socket.destroyed) throw bodyCutOff();
    const hold = this.budget.hold(ownerOf(request));
    const release = (): void => {
      hold.release();
      raw.off('close', release);
      socket.off('close', release);
    };
    raw.once('close', release);
    // An answer that waits for an earlier one on its connection (pipelining) does not emit 'close' when the connection closes.
    // There may be many of them.
    socket.setMaxListeners(0).once('close', release);
    request.bodyHold = hold;
    this.responses.set(request, raw);
  }

  /** Admits an upload, which is streamed. Throws ApiError. */
  admitUpload({ headers, bodyHold }: FastifyRequest): void {
    const length = Number(headers['content-length'] ?? UPLOAD_BYTES);
    if (bodyHold?.growTo(Math.min(length, UPLOAD_BYTES)) === false) throw bodiesFull();
  }

  /** Returns the parsed body; undefined if it is empty. Throws ApiError. */
  async readJson(request: FastifyRequest): Promise<unknown> {
    const { raw, bodyHold: hold, routeOptions } = request;
    const response = this.responses.get(request);
    if (hold === null || response === undefined) throw new Error('The body of a request has no hold.');
    const arrival = arrivalOf(request, this.settings);
    const body = { bytes: await readBody(raw, { limit: routeOptions.bodyLimit, hold, arrival }) };
    const { length } = body.bytes;
    if (length > LARGE_BYTES) await this.turns.take(ownerOf(request), length, response);
    return parseBody(body, this.pool.runnerFor(ownerOf(request)));
  }
}

/** Returns how fast a JSON body must arrive. A body without Content-Length has the time of an empty one. */
function arrivalOf({ headers }: FastifyRequest, settings: Settings): ArrivalLimits {
  const mebibytes = Number(headers['content-length'] ?? 0) / MEBIBYTE;
  return {
    bytesPerSecond: settings.BODY_BYTES_PER_SECOND,
    windowMs: settings.BODY_RATE_WINDOW_MS,
    timeoutMs: settings.BODY_TIMEOUT_MS + Math.ceil(mebibytes * settings.BODY_MS_PER_MIB),
  };
}

/** Returns the key that the body counts for: the organization, or the address while the caller is not known. */
export function ownerOf({ caller, ip }: FastifyRequest): string {
  switch (caller?.kind) {
    case 'service':
    case 'browser':
      return caller.organizationId;
    case 'person':
      // A person with several organizations counts for the first one, because the body that names one is not read yet.
      return [...caller.organizationIds].toSorted()[0] ?? caller.personId;
    case 'operator':
      return 'operators';
    case undefined:
      return `address ${networkOf(ip)}`;
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The part of the budget that the request's body holds. Null without a body. */
    bodyHold: ByteHold | null;
  }
}
