import { type HealthPart } from '#platform';
import type { LiveBus } from './bus.ts';
import { metrics } from './metrics.ts';

/** Returns the health part of wake-ups. `means` describes the effect of a failure. */
export function wakeupsPart(bus: Pick<LiveBus, 'isUp'>, means: string): HealthPart {
  const name = 'Wake-ups between processes do not work';
  return { name, means, works: () => bus.isUp(), found: (up) => metrics.wakeupBusUp.set(Number(up)) };
}
