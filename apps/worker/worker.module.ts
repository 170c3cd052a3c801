import { Module, type DynamicModule } from '@nestjs/common';
import { PlatformModule, type Config, type Logger } from '#platform';
import { RunEngineModule } from '#run-engine';
import { DispatcherModule } from '#run-queue';

/** A worker and the background loops. Needs a platform beside it, which `forRoot` brings for a process of its own. */
@Module({ imports: [RunEngineModule, DispatcherModule] })
export class WorkerModule {
  static forRoot(config: Config, logger: Logger): DynamicModule {
    return { module: WorkerModule, imports: [PlatformModule.forRoot(config, logger)] };
  }
}
