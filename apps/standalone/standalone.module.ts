import { Module, type DynamicModule } from '@nestjs/common';
import { PlatformModule, type Config, type Logger } from '#platform';
import { ApiModule } from '../api/api.module.ts';
import { WorkerModule } from '../worker/worker.module.ts';

/** API and worker in one process, with shared connections. */
@Module({})
export class StandaloneModule {
  static forRoot(config: Config, logger: Logger): DynamicModule {
    return { module: StandaloneModule, imports: [PlatformModule.forRoot(config, logger), ApiModule, WorkerModule] };
  }
}
