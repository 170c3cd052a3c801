import { keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import type { AdminAnswer, AdminCall } from '#contract';
import { get, type OperationAt, type PathOf } from './client.ts';

type AnswerAt<P> = AdminAnswer<OperationAt<'GET', P>>;
/** Operations that answer a page and where the next begins. */
type PagedPath = {
  [P in PathOf<'GET', 'json'>]: AnswerAt<P> extends { nextCursor: string | null } ? P : never;
}[PathOf<'GET', 'json'>];
type Page<Answer> = Answer & { nextCursor: string | null };
type ListOf<Answer> = { [K in keyof Answer]: Answer[K] extends unknown[] ? K : never }[keyof Answer];
type ItemOf<List> = List extends (infer Item)[] ? Item : never;

export interface Pages<Item> {
  /** Of all pages read so far. Empty before the first. */
  items: Item[];
  hasMore: boolean;
  isLoadingMore: boolean;
  loadMore: () => void;
  /** For `QueryState`; its data are the items. */
  query: {
    data: Item[] | undefined;
    error: Error | null;
    isFetching: boolean;
    isPlaceholderData: boolean;
    refetch: () => unknown;
  };
}

interface PageSettings {
  /** Milliseconds between two reads of one page: a list of ten is read again ten times more seldom. */
  refetchInterval?: number;
  /** Only what was created in the last so many minutes, counted anew at each read. */
  withinMinutes?: number;
}

/** A list by pages. `list` is the field of the answer that holds it. */
export function usePages<P extends PagedPath, K extends ListOf<AnswerAt<P>>>(
  path: P,
  call: AdminCall<OperationAt<'GET', P>>,
  list: K,
  { refetchInterval, withinMinutes = 0 }: PageSettings = {},
): Pages<ItemOf<AnswerAt<P>[K]>> {
  return usePagesBy({
    key: [path, call, withinMinutes, 'pages'],
    read: (cursor: string | null, signal) => {
      const query = {
        ...(call.query as object | undefined),
        ...(withinMinutes > 0 ? { since: new Date(Date.now() - withinMinutes * 60_000).toISOString() } : {}),
        ...(cursor === null ? {} : { cursor }),
      };
      return get(path, { ...call, query } as typeof call, signal) as Promise<Page<AnswerAt<P>>>;
    },
    next: (page) => page.nextCursor,
    itemsOf: (page) => page[list] as ItemOf<AnswerAt<P>[K]>[],
    refetchInterval,
  });
}

interface PagesBy<Answer, Cursor, Item> {
  key: unknown[];
  /** Null: the first page. */
  read: (cursor: Cursor | null, signal: AbortSignal) => Promise<Answer>;
  /** Where the next page begins; null at the end. */
  next: (page: Answer) => Cursor | null;
  itemsOf: (page: Answer) => Item[];
  refetchInterval?: number | undefined;
}

/** As `usePages`, where pages are told apart by something else than a cursor. */
export function usePagesBy<Answer, Cursor, Item>(list: PagesBy<Answer, Cursor, Item>): Pages<Item> {
  const { key, read, next, itemsOf, refetchInterval } = list;
  const { data, ...state } = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ signal, pageParam }) => read(pageParam as Cursor | null, signal),
    initialPageParam: null as Cursor | null,
    getNextPageParam: next,
    placeholderData: keepPreviousData,
    refetchInterval: (query) =>
      refetchInterval === undefined ? false : refetchInterval * (query.state.data?.pages.length ?? 1),
  });
  const items = data?.pages.flatMap(itemsOf);
  return {
    items: items ?? [],
    hasMore: state.hasNextPage,
    isLoadingMore: state.isFetchingNextPage,
    loadMore: () => void state.fetchNextPage(),
    query: {
      data: items,
      error: state.error,
      isFetching: state.isFetching,
      isPlaceholderData: state.isPlaceholderData,
      refetch: state.refetch,
    },
  };
}
