import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useConfirm, type Question } from './confirm.tsx';

const OVERVIEW_AGE_MS = 1_500;
/** The time for which a failure is shown, long enough to read it. It covers the page, so it must not stay. */
const FAILURE_SHOWN_MS = 12_000;

interface Settings<Answer> {
  /** The message after success. */
  done: string | ((answer: Answer) => string);
  /** The confirmation before the action; without it, the action starts immediately. */
  ask?: Question;
  /** The id of the deleted resource. Its cached answers are removed, so that its page does not show it. */
  deletes?: string;
}

export interface Action<Answer = unknown> {
  /** Returns undefined if the person cancelled, or the call failed. The failure has been shown. */
  act: () => Promise<Answer | undefined>;
  isBusy: boolean;
}

/**
 * Returns an action that calls the API. The action asks for confirmation if needed, shows the result, and reads all
 * shown data again.
 */
export function useAction<Answer>(
  call: () => Promise<Answer>,
  { done, ask, deletes }: Settings<Answer>,
): Action<Answer> {
  const confirm = useConfirm();
  const queries = useQueryClient();
  const { mutateAsync, isPending } = useMutation({ mutationFn: call });
  const act = async (): Promise<Answer | undefined> => {
    if (ask && !(await confirm(ask))) return undefined;
    try {
      const answer = await mutateAsync();
      if (deletes) queries.removeQueries({ predicate: ({ queryHash }) => queryHash.includes(deletes) });
      notifications.show({ color: 'teal', message: typeof done === 'string' ? done : done(answer) });
      return answer;
    } catch (error) {
      reportFailure(error as Error);
      return undefined;
    } finally {
      // After a failure too, because it often means that the shown data is outdated.
      void queries.invalidateQueries();
      // The service caches the overview for about a second.
      setTimeout(() => void queries.invalidateQueries({ queryKey: ['/overview'] }), OVERVIEW_AGE_MS);
    }
  };
  return { act, isBusy: isPending };
}

export function reportFailure({ message }: Error): void {
  notifications.show({ color: 'red', title: 'Action failed', message, autoClose: FAILURE_SHOWN_MS });
}
