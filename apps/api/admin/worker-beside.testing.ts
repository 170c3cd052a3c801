import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { createLogger, loadConfig, PlatformModule } from '#platform';
import { RunEngineModule } from '#run-engine';
import { DispatcherModule } from '#run-queue';

@Module({ imports: [RunEngineModule, DispatcherModule] })
class WorkerModule {
  static forRoot(platform: DynamicModule): DynamicModule {
    return { module: WorkerModule, imports: [platform] };
  }
}

/** Starts a real worker in this process, on the database of an API under test. */
export async function startWorker(databaseUrl: string): Promise<{ stop: () => Promise<void> }> {
  const config = loadConfig({ DATABASE_URL: databaseUrl });
  const platform = PlatformModule.forRoot(config, createLogger('silent', 'admin spec worker'));
  const context = await NestFactory.createApplicationContext(WorkerModule.forRoot(platform), { logger: false });
  return { stop: () => context.close() };
}
