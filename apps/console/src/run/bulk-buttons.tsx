import { useState } from 'react';
import { Group, List, Stack, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { IconPlayerStop, IconRefresh } from '@tabler/icons-react';
import type { BulkAction } from '#contract';
import { post } from '../api/client.ts';
import { ActionButton } from '../components/action-button.tsx';
import { reportFailure, type Action } from '../components/action.ts';
import { useConfirm } from '../components/confirm.tsx';
import { counted, formatTime } from '../components/format.ts';
import { hasEnded } from '../components/status-table.ts';
import { BULK_WORDS } from './bulk-words.ts';

export type BulkFilter = Omit<BulkAction['filter'], 'since'>;

interface Props {
  filter: BulkFilter;
  /** The maximum age of the Runs, in minutes since their creation. 0 means any age. */
  withinMinutes: number;
  /** True if the list shows only live Runs. */
  isLive: boolean;
}

/** The actions for all Runs that match the filters, not only for the shown ones. */
export function BulkButtons({ filter, withinMinutes, isLive }: Props) {
  const cancel = useBulkAction('cancel', filter, withinMinutes);
  const retry = useBulkAction('retry', filter, withinMinutes);
  const { status } = filter;
  const isOfEnded = status !== undefined && hasEnded(status);
  const mayCancel = !isOfEnded && (isLive || status !== undefined);
  const mayRetry = !isLive && status !== 'completed' && (status === undefined || isOfEnded);
  const target = 'Runs that match the filters';
  return (
    <Group gap="xs">
      {mayCancel && <ActionButton action={cancel} label="Cancel all" target={target} icon={IconPlayerStop} size="xs" />}
      {mayRetry && (
        <ActionButton
          {...{ action: retry, target, icon: IconRefresh, size: 'xs' }}
          label={status === undefined ? 'Retry all failed' : 'Retry all'}
        />
      )}
    </Group>
  );
}

/**
 * Returns an action that plans a bulk action, asks with the exact number of Runs, and starts it. The page shows the
 * progress (bulk-actions.tsx).
 */
export function useBulkAction(action: BulkAction['action'], filter: BulkFilter, withinMinutes = 0): Action {
  const confirm = useConfirm();
  const queries = useQueryClient();
  const [isBusy, setBusy] = useState(false);
  const act = async (): Promise<void> => {
    setBusy(true);
    try {
      const since = withinMinutes > 0 ? new Date(Date.now() - withinMinutes * 60_000).toISOString() : undefined;
      const { bulkAction: plan } = await post('/bulk-actions', { body: { action, filter: { ...filter, since } } });
      if (plan.left === 0) {
        notifications.show({ color: 'gray', ...nothingOf(plan) });
        return;
      }
      const { verb } = BULK_WORDS[action];
      const what = `${verb} ${counted(plan.left, 'Run')}`;
      const isAgreed = await confirm({
        ...{ title: `${what}?`, message: <Plan plan={plan} />, action: what },
        ...(action === 'cancel' ? { dismiss: 'Keep Runs', isDangerous: true } : {}),
      });
      if (isAgreed) await post('/bulk-actions/{bulkActionId}/start', { params: { bulkActionId: plan.id } });
    } catch (error) {
      reportFailure(error as Error);
    } finally {
      setBusy(false);
      void queries.invalidateQueries();
    }
  };
  return { act, isBusy };
}

function nothingOf({ action, runs, reasons }: BulkAction): { title: string; message: string } {
  const title = runs === 0 ? 'No Run matches' : `No Run can be ${BULK_WORDS[action].done}`;
  const why = reasons.map(({ reason, count }) => `${counted(count, 'Run')}: ${reason}`);
  return { title, message: ['Nothing was changed.', ...why].join(' ') };
}

function Plan({ plan }: { plan: BulkAction }) {
  const { action, runs, touches, filter } = plan;
  const { agents, organizations, firstCreatedAt, lastCreatedAt } = touches;
  return (
    <Stack gap="xs">
      <Text size="sm">
        {counted(runs, 'Run')} of {counted(agents, 'Agent')} in {counted(organizations, 'organization')}{' '}
        {runs === 1 ? 'matches' : 'match'} the filters.
        {firstCreatedAt && lastCreatedAt && (
          <>
            {' '}
            The first was created {formatTime(firstCreatedAt)}, the last {formatTime(lastCreatedAt)}.
          </>
        )}
        {filter.since === undefined &&
          filter.endedSince === undefined &&
          ' The filters have no time, so they match Runs of any age.'}
      </Text>
      <BulkReasons bulk={plan} />
      <Text size="sm">
        {action === 'cancel'
          ? 'The Runs stop immediately. Their output so far stays in their Threads, and they can be retried.'
          : 'Each one continues in a new Run. Completed tool calls are not repeated.'}
      </Text>
    </Stack>
  );
}

/** The reasons why Runs are not changed, each with its count. */
export function BulkReasons({ bulk: { action, notDone, reasons } }: { bulk: BulkAction }) {
  if (notDone === 0) return null;
  return (
    <div>
      <Text size="sm">
        {counted(notDone, 'Run')} not {BULK_WORDS[action].done}:
      </Text>
      <List size="sm">
        {reasons.map(({ reason, count }) => (
          <List.Item key={reason}>
            {count} × {reason}
          </List.Item>
        ))}
      </List>
    </div>
  );
}
