import { applyDecorators, HttpCode, RequestMapping, RequestMethod } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { Operation } from '#contract';

/**
 * Where the operations are: {base_url} of the specification (docs/spec/agent-threads-api.md) is the service's address
 * and this.
 */
export const BASE_PATH = '/api/v1';

/**
 * Makes a method the operation's route. What is checked before the method runs stands in the operation (request-checks.ts):
 * the token, path, query and body.
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
