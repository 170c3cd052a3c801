import type { FastifyRequest } from 'fastify';
import type { ThreadLinks } from '#contract';
import { BASE_PATH } from './http/endpoint.ts';

/** Absolute URLs, from PUBLIC_BASE_URL or, without it, the request's own host. */
export class Links {
  private readonly publicUrl: string | null;

  constructor(publicBaseUrl: string | undefined) {
    this.publicUrl = publicBaseUrl?.replace(/\/+$/, '') ?? null;
  }

  /** Of the OpenAPI document: relative to where it was read, if nothing else is known. */
  get baseUrl(): string {
    return `${this.publicUrl ?? ''}${BASE_PATH}`;
  }

  ofThread(request: FastifyRequest, threadId: string): ThreadLinks {
    const origin = this.publicUrl ?? `${request.protocol}://${request.host || hostOf(request)}`;
    return { thread: `${origin}${BASE_PATH}/threads/${threadId}` };
  }
}

/** HTTP/1.0 needs no Host header. */
function hostOf({ socket }: FastifyRequest): string {
  return `${socket.localAddress}:${socket.localPort}`;
}
