import { useEffect, useRef, useState } from 'react';
import { IconCopy } from '@tabler/icons-react';
import { notifications } from '@mantine/notifications';
import { get } from '../api/client.ts';
import { ActionButton } from '../components/action-button.tsx';
import { reportFailure } from '../components/action.ts';
import { copyLater } from '../components/copy.ts';
import { readRunEvents } from './use-run-events.ts';

/** A button that copies a Run as JSON, with its timeline and its events. */
export function CopyRun({ runId }: { runId: string }) {
  const [isBusy, setBusy] = useState(false);
  const leaving = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    leaving.current = controller;
    return () => controller.abort();
  }, [runId]);
  const act = async (): Promise<void> => {
    const { signal } = leaving.current;
    setBusy(true);
    try {
      await copyLater(readRun(runId, signal));
      notifications.show({ color: 'teal', message: 'Copied the Run, its timeline and its events.' });
    } catch (error) {
      if (!signal.aborted) reportFailure(error as Error);
    } finally {
      setBusy(false);
    }
  };
  return <ActionButton action={{ act, isBusy }} label="Copy as JSON" target={`Run ${runId}`} icon={IconCopy} />;
}

async function readRun(runId: string, signal: AbortSignal): Promise<string> {
  const answer = await get('/runs/{runId}/timeline', { params: { runId } }, signal);
  return JSON.stringify({ ...answer, events: await readRunEvents(runId, signal) }, null, 2);
}
