import { useState } from 'react';
import { IconCopy } from '@tabler/icons-react';
import { notifications } from '@mantine/notifications';
import type { ManagedRun } from '#contract';
import { get } from '../api/client.ts';
import { ActionButton } from '../components/action-button.tsx';
import { reportFailure } from '../components/action.ts';
import { copyText } from '../components/copy.ts';
import { readAllEvents } from './use-run-events.ts';

/** Copies all that is known of a Run as JSON: the Run, its timeline, and its events with inputs and results of tools. */
export function CopyRun({ runId }: { runId: ManagedRun['id'] }) {
  const [isBusy, setBusy] = useState(false);
  const act = async (): Promise<void> => {
    setBusy(true);
    try {
      const answer = await get('/runs/{runId}/timeline', { params: { runId } });
      await copyText(JSON.stringify({ ...answer, events: await readAllEvents(runId) }, null, 2));
      notifications.show({ color: 'teal', message: 'Copied the Run, its timeline and its events.' });
    } catch (error) {
      reportFailure(error as Error);
    } finally {
      setBusy(false);
    }
  };
  return <ActionButton action={{ act, isBusy }} label="Copy as JSON" target={`Run ${runId}`} icon={IconCopy} />;
}
