import type { FastifyInstance, FastifyRequest } from 'fastify';
import FindMyWay from 'find-my-way';
import { methodNotAllowed, notFound, type ApiError } from './http-errors.ts';

declare module 'fastify' {
  interface FastifyInstance {
    knownPaths: KnownPaths;
  }
}

/**
 * Names the methods of a path. Fastify treats a wrong method like an unknown path and does not expose its router, so this
 * class holds the same routes in a second router.
 */
export class KnownPaths {
  private readonly router;
  private readonly methods = new Set<string>();

  /** Must be created before the routes are added. */
  constructor(fastify: FastifyInstance, maxParamLength: number) {
    this.router = FindMyWay({ maxParamLength });
    fastify.addHook('onRoute', ({ method, url }) => {
      // The route of @fastify/cors for preflights, which serves nothing else.
      if (method === 'OPTIONS') return;
      for (const each of [method].flat()) this.add(each, url);
    });
  }

  /** Returns the error for a request that no route matches: 405 with `Allow`, or 404. */
  refuse({ url }: FastifyRequest): ApiError {
    const allowed = [...this.methods].filter((method) => this.router.find(method as 'GET', url) !== null);
    return allowed.length > 0 ? methodNotAllowed(allowed) : notFound('path');
  }

  private add(method: string, url: string): void {
    this.methods.add(method);
    this.router.on(method as 'GET', url, () => undefined);
  }
}
