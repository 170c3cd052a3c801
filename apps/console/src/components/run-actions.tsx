import { Group } from '@mantine/core';
import { IconPlayerStop, IconRefresh } from '@tabler/icons-react';
import type { ManagedRun } from '#contract';
import { post } from '../api/client.ts';
import { ActionButton } from './action-button.tsx';
import { useAction } from './action.ts';
import { shortenId } from './format.ts';
import { hasEnded } from './status-table.ts';

interface Props {
  run: Pick<ManagedRun, 'id' | 'status' | 'mayBeRetried'>;
  isCompact?: boolean;
}

/** The actions that a Run allows now: cancel it while it is live, or retry it. */
export function RunActions({ run, isCompact = false }: Props) {
  const { id } = run;
  const cancel = useAction(() => post('/runs/{runId}/cancel', { params: { runId: id } }), {
    done: `Run ${shortenId(id)} is cancelled.`,
    ask: {
      title: 'Cancel this Run?',
      message: `Run ${id} stops immediately. Its output so far stays in the Thread, and you can retry the Run.`,
      action: 'Cancel Run',
      // "Cancel" beside "Cancel Run" would not say which of the two ends the Run.
      dismiss: 'Keep Run',
      isDangerous: true,
    },
  });
  // Does not open the page of the new Run, so that several Runs can be retried from a list.
  const retry = useAction(() => post('/runs/{runId}/retry', { params: { runId: id } }), {
    done: (answer) => `Run ${shortenId(id)} is retried as Run ${shortenId(answer.run.id)}.`,
  });
  const size = isCompact ? 'compact-xs' : 'xs';
  const target = `Run ${id}`;
  if (hasEnded(run.status) && !run.mayBeRetried) return null;
  return (
    <Group gap={4} wrap="nowrap" justify="flex-end">
      {!hasEnded(run.status) && (
        <ActionButton {...{ target, size }} action={cancel} label="Cancel" icon={IconPlayerStop} />
      )}
      {run.mayBeRetried && <ActionButton {...{ target, size }} action={retry} label="Retry" icon={IconRefresh} />}
    </Group>
  );
}
