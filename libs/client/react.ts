import { createContext, createElement, useContext, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import type { Decision, Run, SendOptions, Spool } from './index.ts';
import { EMPTY_VIEW, ThreadStore, type ThreadView } from './thread-store.ts';

export type { ThreadView } from './thread-store.ts';

const SpoolContext = createContext<Spool | null>(null);

/** Gives the client to all `useThread` below. */
export function SpoolProvider({ client, children }: { client: Spool; children?: ReactNode }): ReactNode {
  return createElement(SpoolContext.Provider, { value: client }, children);
}

/** Returns the client of the `SpoolProvider`. */
export function useSpool(): Spool {
  const client = useContext(SpoolContext);
  if (client === null) throw new Error('useThread and useSpool need a SpoolProvider above them.');
  return client;
}

export interface ThreadActions {
  /** Sends a message. The view shows it when the service has it. */
  send: (text: string, options?: SendOptions) => Promise<Run>;
  /** Decides a question. Throws SpoolError with the reason `request_decided` if another decision counts. */
  decide: (requestId: string, decision: Decision) => Promise<void>;
  /** Cancels the Run of the view. Does nothing if it has ended. */
  interrupt: () => Promise<void>;
  /** Continues a Run that failed, was cancelled or expired. */
  retry: (runId: string) => Promise<Run>;
  /** Adds the page of messages before the first one. */
  loadEarlier: () => Promise<void>;
}

/** Without a Thread, there is nothing to subscribe to. */
const NO_STORE = { subscribe: () => () => undefined, getView: () => EMPTY_VIEW };

/**
 * Returns a Thread's messages, which follow the Thread live, and what one can do with it. All components of a page that show
 * the same Thread share one stream. Unmounting changes nothing: Runs continue. `null` is for a Thread that does not exist yet.
 */
export function useThread(threadId: string | null): ThreadView & ThreadActions {
  const client = useSpool();
  const { store, actions } = useMemo(() => shared(client, threadId), [client, threadId]);
  const view = useSyncExternalStore(store.subscribe, store.getView, () => EMPTY_VIEW);
  return useMemo(() => ({ ...view, ...actions }), [view, actions]);
}

interface Shared {
  store: Pick<ThreadStore, 'subscribe' | 'getView'>;
  actions: ThreadActions;
}

/** By client and Thread. A component that is hidden keeps its store, and with it the place in the log. */
const all = new WeakMap<Spool, Map<string, WeakRef<Shared>>>();

function shared(client: Spool, threadId: string | null): Shared {
  if (threadId === null) return NOTHING;
  const ofClient = all.get(client) ?? new Map<string, WeakRef<Shared>>();
  all.set(client, ofClient);
  const known = ofClient.get(threadId)?.deref();
  if (known !== undefined) return known;
  const thread = client.thread(threadId);
  const store = new ThreadStore(thread);
  const made: Shared = {
    store,
    actions: {
      send: (text, options) => store.send(text, options),
      decide: (requestId, decision) => thread.decide(requestId, decision),
      interrupt: () => store.interrupt(),
      retry: (runId) => thread.retry(runId),
      loadEarlier: () => store.loadEarlier(),
    },
  };
  ofClient.set(threadId, new WeakRef(made));
  return made;
}

const missing = (): Promise<never> => Promise.reject(new Error('There is no Thread yet.'));
const NOTHING: Shared = {
  store: NO_STORE,
  actions: { send: missing, decide: missing, interrupt: missing, retry: missing, loadEarlier: missing },
};
