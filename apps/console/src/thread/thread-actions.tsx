import { Group } from '@mantine/core';
import { IconArchive, IconArchiveOff, IconCircleOff } from '@tabler/icons-react';
import { useLocation } from 'wouter';
import type { ManagedThread } from '#contract';
import { post, remove } from '../api/client.ts';
import { useSession } from '../api/use-session.ts';
import { ActionButton } from '../components/action-button.tsx';
import { ChatLink } from '../components/chat-link.tsx';
import { useAction } from '../components/action.ts';
import { TypedDeletion } from '../components/typed-deletion.tsx';

/** The buttons that concern a Thread as a whole. */
export function ThreadActions({ thread }: { thread: ManagedThread }) {
  const call = { params: { threadId: thread.id } };
  const target = `Thread ${thread.id}`;
  const { data: session } = useSession();
  // An application can have users with such names.
  const isOwn = thread.ofChat && thread.userId === `operator:${session?.operator.name}`;
  const archive = useAction(() => post('/threads/{threadId}/archive', call), { done: 'The Thread is archived.' });
  const unarchive = useAction(() => post('/threads/{threadId}/unarchive', call), {
    done: 'The Thread is unarchived.',
  });
  const terminate = useAction(() => post('/threads/{threadId}/terminate', call), {
    done: 'The Thread is terminated.',
    ask: {
      title: 'Terminate this Thread?',
      message: 'Its Runs are cancelled, and it accepts no more messages. It stays readable. This cannot be undone.',
      action: 'Terminate',
      isDangerous: true,
    },
  });
  return (
    <Group gap="xs">
      {isOwn && <ChatLink agentId={thread.agentId} threadId={thread.id} label="Open in chat" />}
      {thread.archived ? (
        <ActionButton {...{ target }} action={unarchive} label="Unarchive" icon={IconArchiveOff} />
      ) : (
        <ActionButton {...{ target }} action={archive} label="Archive" icon={IconArchive} />
      )}
      {thread.status !== 'TERMINATED' && (
        <ActionButton {...{ target }} action={terminate} label="Terminate" icon={IconCircleOff} />
      )}
      <DeleteThread thread={thread} />
    </Group>
  );
}

const TYPED = 6;

function DeleteThread({ thread: { id } }: { thread: ManagedThread }) {
  const [, go] = useLocation();
  const deletion = useAction(
    async () => {
      const answer = await remove('/threads/{threadId}', { params: { threadId: id } });
      // At once: read again, the page would find nothing.
      go('/threads');
      return answer;
    },
    { done: 'The Thread is deleted.', deletes: id },
  );
  const wanted = id.slice(-TYPED);
  return (
    <TypedDeletion
      {...{ deletion, wanted }}
      target={`Thread ${id}`}
      title="Delete this Thread?"
      message="Its events and files are deleted permanently, and its Runs are cancelled."
      label={`Type the last ${TYPED} characters of its id, ${wanted}`}
    />
  );
}
