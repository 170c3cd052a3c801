import { applyDecorators, HttpCode, RequestMapping, RequestMethod } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { Operation } from '#contract';

/**
 * The path of all operations. {base_url} of the specification (docs/spec/agent-threads-api.md) is the service's address
 * plus this path.
 */
export const BASE_PATH = '/api/v1';

/**
 * Makes a method the route of the operation. Before the method runs, request-checks.ts checks the token, path, query and
 * body.
 */
export function Endpoint(operation: Operation): MethodDecorator {
  return applyDecorators(
    RequestMapping({
      method: RequestMethod[operation.method],
      path: operation.path.replaceAll(/\{(\w+)\}/g, ':$1'),
    }),
    HttpCode(operation.status),
    RouteConfig({ operation }),
  );
}
