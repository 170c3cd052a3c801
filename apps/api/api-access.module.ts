import { Module } from '@nestjs/common';
import { AccessModule, Authenticator, OperatorSessions } from '#access';
import { AgentCatalogue, AgentsModule } from '#agents';
import { EventStoreModule, ThreadStore } from '#event-store';
import { FilesModule, FileStore } from '#files';
import { CONFIG, DATABASE, type Config, type Database } from '#platform';
import { Callers } from './http/callers.ts';
import { SummaryReader } from './queries/summary-reader.ts';
import { AccessGuard } from './access-guard.ts';

/** The access checks that the routes and the event stream share. */
@Module({
  imports: [AccessModule, AgentsModule, EventStoreModule, FilesModule],
  providers: [
    { provide: SummaryReader, inject: [DATABASE], useFactory: ({ pool }: Database) => new SummaryReader(pool) },
    {
      provide: Callers,
      inject: [Authenticator, OperatorSessions, CONFIG],
      useFactory: (authenticator: Authenticator, sessions: OperatorSessions, { PUBLIC_BASE_URL }: Config) =>
        new Callers(authenticator, sessions, PUBLIC_BASE_URL),
    },
    {
      provide: AccessGuard,
      inject: [AgentCatalogue, ThreadStore, FileStore],
      useFactory: (...parts: ConstructorParameters<typeof AccessGuard>) => new AccessGuard(...parts),
    },
  ],
  exports: [AccessModule, AgentsModule, FilesModule, SummaryReader, AccessGuard, Callers],
})
export class ApiAccessModule {}
