import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useConfirm, type Question } from './confirm.tsx';

const OVERVIEW_AGE_MS = 1_500;
/** Long enough to read why, and short enough not to lie on what is below it. */
const FAILURE_SHOWN_MS = 12_000;

interface Settings<Answer> {
  /** Told when it is done. */
  done: string | ((answer: Answer) => string);
  /** Asked before; without it nothing is. */
  ask?: Question;
  /** The id of what it deletes: going back to its page, nothing that was read before is shown. */
  deletes?: string;
}

export interface Action<Answer = unknown> {
  /** Undefined where the person did not agree, or it failed: that has been told. */
  act: () => Promise<Answer | undefined>;
  isBusy: boolean;
}

/** Does something by the API: asks first if it must, tells what became of it, and has all that is shown read again. */
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
      // Also after a failure: often what was shown is no longer so.
      void queries.invalidateQueries();
      // The overview's answer may be a second old.
      setTimeout(() => void queries.invalidateQueries({ queryKey: ['/overview'] }), OVERVIEW_AGE_MS);
    }
  };
  return { act, isBusy: isPending };
}

export function reportFailure({ message }: Error): void {
  notifications.show({ color: 'red', title: 'Action failed', message, autoClose: FAILURE_SHOWN_MS });
}
