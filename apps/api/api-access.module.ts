import { Module } from '@nestjs/common';
import { AccessModule } from '#access';
import { AgentCatalogue, AgentsModule } from '#agents';
import { FilesModule, FileStore } from '#files';
import { DATABASE, type Database } from '#platform';
import { SummaryReader } from './queries/summary-reader.ts';
import { AccessGuard } from './access-guard.ts';

/** Who may see what: what the routes and the event stream share. */
@Module({
  imports: [AccessModule, AgentsModule, FilesModule],
  providers: [
    { provide: SummaryReader, inject: [DATABASE], useFactory: ({ pool }: Database) => new SummaryReader(pool) },
    {
      provide: AccessGuard,
      inject: [AgentCatalogue, SummaryReader, FileStore],
      useFactory: (...parts: ConstructorParameters<typeof AccessGuard>) => new AccessGuard(...parts),
    },
  ],
  exports: [AccessModule, AgentsModule, FilesModule, SummaryReader, AccessGuard],
})
export class ApiAccessModule {}
