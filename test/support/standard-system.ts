import type { SpawnedNode } from '#testing';
import { FakeProvider } from './fake-provider.ts';
import type { Random } from './random.ts';
import { StandardLoad, type StandardLoadOptions } from './standard-load.ts';
import { startSystem, type ApiProcess, type System, type SystemOptions } from './system.ts';

/** Two apis and two workers whose agent lives on the outside world, which the test plays: what faults are done to. */
export interface StandardSystem extends System {
  fakeProvider: FakeProvider;
  apis: ApiProcess[];
  /** Those that run now: whoever kills one puts another in its place. */
  workers: SpawnedNode[];
  startLoad(random: Random, options?: StandardLoadOptions): StandardLoad;
}

const PROCESSES = 2;

export async function startStandardSystem({ manifest, env, ...more }: SystemOptions = {}): Promise<StandardSystem> {
  const fakeProvider = await FakeProvider.start();
  const stop = [() => fakeProvider.close()];
  try {
    const system = await startSystem({
      ...more,
      manifest: { ...fakeProvider.manifest, ...manifest },
      env: { ...fakeProvider.env, ...env },
    });
    stop.unshift(() => system.stop());
    const some = Array.from({ length: PROCESSES });
    const [apis, workers] = await Promise.all([
      Promise.all(some.map(() => system.startApi())),
      Promise.all(some.map(() => system.startWorker())),
    ]);
    return standardSystem(system, fakeProvider, apis, workers);
  } catch (error) {
    for (const end of stop) await end();
    throw error;
  }
}

function standardSystem(
  system: System,
  fakeProvider: FakeProvider,
  apis: ApiProcess[],
  workers: SpawnedNode[],
): StandardSystem {
  const callers = apis.map((_, i) => () => apis[i]!.caller);
  const loads: StandardLoad[] = [];
  return {
    ...system,
    fakeProvider,
    apis,
    workers,
    startLoad: (random, options) => {
      const load = new StandardLoad({ database: system.database, fakeProvider, callers, random }, options);
      loads.push(load);
      return load;
    },
    stop: async () => {
      loads.forEach((load) => load.abandon());
      await system.stop();
      await fakeProvider.close();
    },
  };
}
