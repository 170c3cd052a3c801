import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import type { QueueStatus } from '#contract';
import { post } from '../api/client.ts';
import { ActionButton } from '../components/action-button.tsx';
import { useAction } from '../components/action.ts';

/** Pauses the queue after asking, or lets it go on. */
export function QueueSwitch({ queue }: { queue: Pick<QueueStatus, 'pausedAt'> }) {
  const target = 'the queue';
  const pause = useAction(() => post('/queue/pause'), {
    done: 'The queue is paused.',
    ask: {
      title: 'Pause the queue?',
      message:
        'No Run of any Agent starts until the queue is resumed. Running Runs continue, and messages are still accepted.',
      action: 'Pause the queue',
      isDangerous: true,
    },
  });
  const resume = useAction(() => post('/queue/resume'), { done: 'The queue is resumed.' });
  return queue.pausedAt === null ? (
    <ActionButton {...{ target }} action={pause} label="Pause" icon={IconPlayerPause} />
  ) : (
    <ActionButton {...{ target }} action={resume} label="Resume" icon={IconPlayerPlay} variant="filled" />
  );
}
