import { useEffect, useState, type ComponentType } from 'react';
import { unreachableSinceNow } from './api/reachability.ts';
import { Loading } from './components/query-state.tsx';

/** How often a script is requested from a service that answers. While it does not answer, there is no limit. */
const TRIES = 3;
const PAUSE_MS = 1_000;

const ALL: (() => Promise<unknown>)[] = [];

/**
 * Returns a component whose script is loaded when it is first shown, or by `loadAll` if it is a page of the console. It shows a loader
 * until then, also while the service is unavailable. React's `lazy` would show the fallback of Suspense for at least 300 ms, even if
 * the script is there already.
 */
export function lazy<Props extends object>(
  load: () => Promise<{ default: ComponentType<Props> }>,
  { isPage = true } = {},
): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  const loadOnce = async (): Promise<ComponentType<Props>> => (loaded ??= (await load()).default);
  if (isPage) ALL.push(loadOnce);
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

/** Loads all pages, so that they can be shown while the service is unavailable, or is of a newer release. */
export async function loadAll(): Promise<void> {
  // One after the other, so that they do not delay what the person opens meanwhile.
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
