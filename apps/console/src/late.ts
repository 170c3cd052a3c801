import { lazy, type ComponentType, type LazyExoticComponent } from 'react';
import { awaySinceNow } from './api/reachability.ts';

/** A script that the service does not have any more will not come; one of a service that is away will. */
const TRIES = 3;
const PAUSE_MS = 1_000;

const ALL: (() => Promise<unknown>)[] = [];

/** A component whose script is loaded when it is first shown, or by `loadAll`: once the service is back, where it is away. */
export function late<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): LazyExoticComponent<ComponentType<Props>> {
  ALL.push(load);
  return lazy(() => patiently(load));
}

/** Loads what has not been shown yet, so that it can be shown while the service is away, or is of a newer release. */
export async function loadAll(): Promise<void> {
  // One after the other: what is shown meanwhile comes first. Some scripts bring more of them.
  for (const load of ALL) await load().catch(() => undefined);
}

async function patiently<T>(load: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await load();
    } catch (error) {
      if (tries >= TRIES && awaySinceNow() === null) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
