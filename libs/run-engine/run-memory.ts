import { getHeapStatistics } from 'node:v8';
import { BOUNDS } from '#domain';
import { ByteBudget, type Config } from '#platform';
import { metrics } from './metrics.ts';

/** The largest tool call must fit if nothing else is read. It needs four times its message. */
const LARGEST_CALL_BYTES = 4 * BOUNDS.toolServers.message.value;

/** Smaller holds are not counted, so small Runs never wait. All slots together hold little this way. */
const SMALL_BYTES = 256 * 1024;

type Settings = Pick<Config, 'RUN_MEMORY_BYTES' | 'RUN_MEMORY_PERCENT_PER_ORGANIZATION'>;

/** The memory that the Runs of this process may use (docs/adr/0028). By default half of the heap that V8 may have. */
export function runMemoryBudget({
  RUN_MEMORY_BYTES: wanted = Math.floor(getHeapStatistics().heap_size_limit / 2),
  RUN_MEMORY_PERCENT_PER_ORGANIZATION: percent,
}: Settings): ByteBudget {
  const process = Math.max(wanted, LARGEST_CALL_BYTES);
  const share = Math.max(Math.floor((process * percent) / 100), LARGEST_CALL_BYTES);
  metrics.runMemoryBytes.set(0);
  metrics.runsWaitingForMemory.set(0);
  return new ByteBudget({ process, share, small: SMALL_BYTES }, (bytes, waiting) => {
    metrics.runMemoryBytes.set(bytes);
    metrics.runsWaitingForMemory.set(waiting);
  });
}
