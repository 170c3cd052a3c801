import { useEffect, useState, type ComponentType } from 'react';
import { unreachableSinceNow } from './api/reachability.ts';
import { Loading } from './components/query-state.tsx';

/** A script that the service does not have any more will not come; one of a service that is away will. */
const TRIES = 3;
const PAUSE_MS = 1_000;

const ALL: (() => Promise<unknown>)[] = [];

/**
 * A component whose script is loaded when it is first shown, or by `loadAll`: once the service is back, where it is away. Until then it
 * is a loader. Not React's `lazy`: what follows the fallback of a Suspense waits until that was to be seen for 300 ms, and also where the
 * script is there already.
 */
export function lazy<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  const loadOnce = async (): Promise<ComponentType<Props>> => (loaded ??= (await load()).default);
  ALL.push(loadOnce);
  return function Lazy(props: Props) {
    const [Shown, show] = useState(() => loaded);
    const [failure, fail] = useState<{ error: unknown } | null>(null);
    useEffect(() => {
      if (Shown === null) {
        patiently(loadOnce).then(
          (component) => show(() => component),
          (error: unknown) => fail({ error }),
        );
      }
    }, [Shown]);
    if (failure !== null) throw failure.error;
    return Shown === null ? <Loading /> : <Shown {...props} />;
  };
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
      if (tries >= TRIES && unreachableSinceNow() === null) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
