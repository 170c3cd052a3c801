import { useEffect, useState } from 'react';
import { ActionIcon, Button, Group, Menu, NavLink, SegmentedControl, Stack, TextInput } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import {
  IconArchive,
  IconArchiveOff,
  IconDots,
  IconPencil,
  IconPlus,
  IconSearch,
  IconTrash,
} from '@tabler/icons-react';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link, useLocation } from 'wouter';
import type { Spool, ThreadSummary } from '#client';
import { useAction } from '../components/action.ts';
import { Dialog } from '../components/dialog.tsx';
import { Empty, ErrorNote, Loading } from '../components/query-state.tsx';
import type { Access } from './access.ts';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';

/** The query key of the lists of chats. */
export const CHATS = 'chats';

/** How often the list is read again while the page is visible. Milliseconds. */
const READ_EVERY_MS = 15_000;
const PAGE = 100;
/** How many chats the filter loads by itself. */
const MAX_FILTERED = 1_000;

interface Props {
  access: Access;
  threadId: string | null;
  /** Called after a link was followed. */
  onFollow: () => void;
}

/** The chats of one user with one Agent. The chat that changed last comes first. */
export function ChatList({ access: { client, agentId }, threadId, onFollow }: Props) {
  const [wanted, setWanted] = useState('');
  const [archived, setArchived] = useState<'false' | 'true'>('false');
  const { data, error, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery({
    queryKey: [CHATS, agentId, archived],
    queryFn: ({ pageParam }) =>
      client.threads.list({ agentId, archived, limit: PAGE, ...(pageParam && { cursor: pageParam }) }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ nextCursor }) => nextCursor,
    refetchInterval: READ_EVERY_MS,
  });
  const chats = data?.pages.flatMap(({ threads }) => threads);
  const isFiltered = wanted.trim() !== '';
  const mayLoad = isFiltered && hasNextPage && !isFetchingNextPage && (chats?.length ?? 0) < MAX_FILTERED;
  useEffect(() => {
    if (mayLoad) void fetchNextPage();
  }, [mayLoad, fetchNextPage]);
  const shown = chats?.filter((chat) => titleOf(chat).toLowerCase().includes(wanted.trim().toLowerCase()));
  return (
    <Stack gap="xs">
      <Button component={Link} href={`/${agentId}`} leftSection={<IconPlus size={14} />} onClick={onFollow}>
        New chat
      </Button>
      <TextInput
        value={wanted}
        onChange={(event) => setWanted(event.currentTarget.value)}
        placeholder="Filter by title"
        aria-label="Filter by title"
        leftSection={<IconSearch size={14} />}
      />
      <SegmentedControl
        size="xs"
        value={archived}
        onChange={(value) => setArchived(value)}
        data={[
          { value: 'false', label: 'Active' },
          { value: 'true', label: 'Archived' },
        ]}
        aria-label="Chats to list"
      />
      {error && <ErrorNote error={error} />}
      {shown === undefined && !error && <Loading />}
      {shown?.length === 0 && <Empty>{!isFiltered ? 'No chats.' : 'No title contains this text.'}</Empty>}
      <ul className={classes.chats}>
        {shown?.map((chat) => (
          <li key={chat.id}>
            <ChatLink {...{ chat, client, onFollow }} isOpen={chat.id === threadId} isArchived={archived === 'true'} />
          </li>
        ))}
      </ul>
      {hasNextPage && (
        <Button variant="subtle" loading={isFetchingNextPage} onClick={() => void fetchNextPage()}>
          Load more
        </Button>
      )}
    </Stack>
  );
}

const titleOf = ({ title }: Pick<ThreadSummary, 'title'>): string => withoutDirections(title ?? 'Untitled chat');

interface ChatLinkProps {
  chat: ThreadSummary;
  client: Spool;
  isOpen: boolean;
  isArchived: boolean;
  onFollow: () => void;
}

const STATES: Record<string, string> = {
  queued: 'Answering',
  running: 'Answering',
  waiting_input: 'Needs approval',
  failed: 'Failed',
};

function ChatLink({ chat, client, isOpen, isArchived, onFollow }: ChatLinkProps) {
  const state = STATES[chat.run?.status ?? ''];
  return (
    <Group gap={0} wrap="nowrap">
      <NavLink
        component={Link}
        href={`/${chat.agent_id}/${chat.id}`}
        onClick={onFollow}
        active={isOpen}
        aria-current={isOpen ? 'page' : undefined}
        label={titleOf(chat)}
        description={state}
        noWrap
        className={classes.chat}
        // Mantine's colour has too little contrast on the background of the open chat.
        styles={{ description: { color: 'inherit', opacity: 1 } }}
      />
      <ChatMenu {...{ chat, client, isArchived }} />
    </Group>
  );
}

function ChatMenu({ chat, client, isArchived }: Omit<ChatLinkProps, 'onFollow' | 'isOpen'>) {
  const [, navigate] = useLocation();
  const [renaming, { open, close }] = useDisclosure(false);
  const thread = client.thread(chat.id);
  const title = titleOf(chat);
  const leave = (): void => {
    // Another chat may be open by now.
    if (window.location.pathname === `/chat/${chat.agent_id}/${chat.id}`) navigate(`/${chat.agent_id}`);
  };
  const archive = useAction(() => (isArchived ? thread.unarchive() : thread.archive()), {
    done: isArchived ? 'Chat restored.' : 'Chat archived.',
  });
  const remove = useAction(() => thread.delete().then(leave), {
    done: 'Chat deleted.',
    ask: {
      title: 'Delete this chat?',
      message: `“${title}” and its messages and files are deleted permanently.`,
      action: 'Delete',
      isDangerous: true,
    },
    deletes: chat.id,
  });
  return (
    <>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon aria-label={`Actions for ${title}`}>
            <IconDots size={16} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconPencil size={14} />} onClick={open}>
            Rename
          </Menu.Item>
          <Menu.Item
            leftSection={isArchived ? <IconArchiveOff size={14} /> : <IconArchive size={14} />}
            onClick={() => void archive.act()}
          >
            {isArchived ? 'Restore' : 'Archive'}
          </Menu.Item>
          <Menu.Item color="red" leftSection={<IconTrash size={14} />} onClick={() => void remove.act()}>
            Delete
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      {renaming && <RenameDialog {...{ chat, client, close }} />}
    </>
  );
}

function RenameDialog({ chat, client, close }: { chat: ThreadSummary; client: Spool; close: () => void }) {
  const [title, setTitle] = useState(chat.title ?? '');
  const setNew = async (): Promise<true> => {
    await client.thread(chat.id).setTitle(title.trim() === '' ? null : title.trim());
    return true;
  };
  const rename = useAction(setNew, { done: 'Chat renamed.' });
  const submit = async (): Promise<void> => {
    if (await rename.act()) close();
  };
  return (
    <Dialog
      opened
      title="Rename chat"
      action="Rename"
      isBusy={rename.isBusy}
      onSubmit={() => void submit()}
      onClose={close}
    >
      <TextInput
        label="Title"
        description="If empty, the first message is the title."
        value={title}
        maxLength={255}
        onChange={(event) => setTitle(event.currentTarget.value)}
        data-autofocus
      />
    </Dialog>
  );
}
