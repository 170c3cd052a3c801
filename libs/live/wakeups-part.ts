import { type HealthPart } from '#platform';
import type { LiveBus } from './bus.ts';
import { metrics } from './metrics.ts';

/** Wake-ups, as a process depends on them. */
export function wakeupsPart(bus: Pick<LiveBus, 'isUp'>, means: string): HealthPart {
  const name = 'Wake-ups between processes do not work';
  return { name, means, works: () => bus.isUp(), found: (up) => metrics.wakeupBusUp.set(Number(up)) };
}
