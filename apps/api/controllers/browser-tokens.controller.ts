import { Controller, Header, Inject, Req } from '@nestjs/common';
import { operations, type BrowserTokenAnswer } from '#contract';
import { BrowserTokenService } from '../browser-token-service.ts';
import type { ApiRequest } from '../http/caller.ts';
import { BASE_PATH, Endpoint } from '../http/endpoint.ts';

@Controller(BASE_PATH)
export class BrowserTokensController {
  constructor(@Inject(BrowserTokenService) private readonly tokens: BrowserTokenService) {}

  @Endpoint(operations.createBrowserToken)
  @Header('Cache-Control', 'no-store')
  create(@Req() request: ApiRequest<typeof operations.createBrowserToken>): Promise<BrowserTokenAnswer> {
    return this.tokens.create(request);
  }
}
