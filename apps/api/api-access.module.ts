import { Module } from '@nestjs/common';
import { AccessModule } from '#access';
import { AgentCatalogue, AgentsModule } from '#agents';
import { DATABASE, type Database } from '#platform';
import { SummaryReader } from './queries/summary-reader.ts';
import { AccessGuard } from './visible-thread.ts';

/** Who may see what: what the routes and the event stream share. */
@Module({
  imports: [AccessModule, AgentsModule],
  providers: [
    { provide: SummaryReader, inject: [DATABASE], useFactory: ({ pool }: Database) => new SummaryReader(pool) },
    {
      provide: AccessGuard,
      inject: [AgentCatalogue, SummaryReader],
      useFactory: (agents: AgentCatalogue, summaries: SummaryReader) => new AccessGuard(agents, summaries),
    },
  ],
  exports: [AccessModule, AgentsModule, SummaryReader, AccessGuard],
})
export class ApiAccessModule {}
