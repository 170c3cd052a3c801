import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { AdminAnswer, AdminCall } from '#contract';
import { CallError, get, type OperationAt, type PathOf } from './client.ts';

type AnswerAt<P> = AdminAnswer<OperationAt<'GET', P>>;

interface ReadSettings<Answer> {
  /** Milliseconds between two reads, or what they are after an answer; polling rests while the tab is hidden. */
  refetchInterval?: number | ((answer: Answer | undefined) => number);
  /** False: not yet. */
  enabled?: boolean;
}

/** Reads by an operation of the admin API. While filters change, what was read before stays; what is gone does not. */
export function useOperation<P extends PathOf<'GET', 'json'>>(
  path: P,
  call: AdminCall<OperationAt<'GET', P>> = {},
  { refetchInterval, enabled = true }: ReadSettings<AnswerAt<P>> = {},
): UseQueryResult<AnswerAt<P>> {
  const query = useQuery({
    queryKey: [path, call],
    queryFn: ({ signal }) => get(path, call, signal),
    placeholderData: keepPreviousData,
    refetchInterval: ({ state }) =>
      (typeof refetchInterval === 'function' ? refetchInterval(state.data) : refetchInterval) ?? false,
    enabled,
  });
  const isGone = query.error instanceof CallError && query.error.status === 404;
  return isGone ? ({ ...query, data: undefined } as UseQueryResult<AnswerAt<P>>) : query;
}
