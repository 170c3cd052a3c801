import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import { CONFIG, LOGGER, type Config, type Logger } from '#platform';
import { TaskPool } from './task-pool.ts';

/** The task pool of the process. Closes it after the work that uses it has ended. */
@Module({
  providers: [
    {
      provide: TaskPool,
      inject: [CONFIG, LOGGER],
      useFactory: ({ POOL_PROCESSES: size, POOL_MEMORY_BYTES: memoryBytes }: Config, logger: Logger) =>
        new TaskPool({ size, memoryBytes, logger }),
    },
  ],
  exports: [TaskPool],
})
export class TaskPoolModule implements OnApplicationShutdown {
  constructor(@Inject(TaskPool) private readonly pool: TaskPool) {}

  async onApplicationShutdown(): Promise<void> {
    await this.pool.close();
  }
}
