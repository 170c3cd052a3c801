import type { FastifyRequest } from 'fastify';
import type { ThreadLinks } from '#contract';
import { BASE_PATH } from './http/endpoint.ts';

/** Builds absolute URLs from PUBLIC_BASE_URL or, without it, from the host of the request. */
export class Links {
  private readonly publicUrl: string | null;

  constructor(publicBaseUrl: string | undefined) {
    this.publicUrl = publicBaseUrl?.replace(/\/+$/, '') ?? null;
  }

  /** The server URL of the OpenAPI document. Without PUBLIC_BASE_URL, it is relative to the document. */
  get baseUrl(): string {
    return `${this.publicUrl ?? ''}${BASE_PATH}`;
  }

  ofThread(request: FastifyRequest, threadId: string): ThreadLinks {
    return { thread: this.ofPath(request, `${BASE_PATH}/threads/${threadId}`) };
  }

  ofPath(request: FastifyRequest, path: `/${string}`): string {
    const origin = this.publicUrl ?? `${request.protocol}://${request.host || hostOf(request)}`;
    return origin + path;
  }
}

/** Returns the local address as the host, because HTTP/1.0 requires no Host header. */
function hostOf({ socket }: FastifyRequest): string {
  return `${socket.localAddress}:${socket.localPort}`;
}
