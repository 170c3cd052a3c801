import { Module } from '@nestjs/common';
import { DATABASE, PolicyWatch, type Database } from '#platform';
import { AgentCatalogue } from './agent-catalogue.ts';
import { echoHarness } from './echo/echo-harness.ts';
import { harnessesByName, type Harnesses } from './harness.ts';

/** Injection token of the process's harnesses, by name. */
export const HARNESSES = Symbol('HARNESSES');

@Module({
  providers: [
    { provide: HARNESSES, useFactory: () => harnessesByName([echoHarness()]) },
    {
      provide: AgentCatalogue,
      inject: [DATABASE, PolicyWatch, HARNESSES],
      useFactory: ({ pool }: Database, watch: PolicyWatch, harnesses: Harnesses) =>
        new AgentCatalogue({ pool, watch, harnesses }),
    },
  ],
  exports: [HARNESSES, AgentCatalogue],
})
export class AgentsModule {}
