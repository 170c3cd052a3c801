import { useCallback, useEffect, useState, type ReactNode } from 'react';
import { ActionIcon, AppShell, Burger, Group, Image, Select, Title } from '@mantine/core';
import { useDisclosure, useDocumentTitle } from '@mantine/hooks';
import { IconLayoutDashboard } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useLocation, useRoute } from 'wouter';
import { SpoolProvider, useThread } from '#client/react';
import icon from '../icon.svg';
import type { Access } from './access.ts';
import type { ChatAgent } from './chat-agents.ts';
import { ChatList, CHATS } from './chat-list.tsx';
import classes from './chat.module.css';
import { Conversation } from './conversation.tsx';

/** Returns the ids of the Agent and the Thread in the address. */
export function usePlace(): { agentId: string | null; threadId: string | null } {
  const [, params] = useRoute('/:agentId?/:threadId?');
  return { agentId: params?.agentId ?? null, threadId: params?.threadId ?? null };
}

interface ChatProps {
  access: Access;
  agents: ChatAgent[];
  agent: ChatAgent | undefined;
  threadId: string | null;
  account: ReactNode;
  isOperator?: boolean;
}

/** The page with the list of chats, and the chat that the address names. */
export function Chat({ access, agents, agent, threadId, account, isOperator = false }: ChatProps) {
  const [opened, { toggle, close }] = useDisclosure();
  const [, navigate] = useLocation();
  const { agentId } = access;
  useDocumentTitle(`${agent?.name ?? 'Chat'} · Spool`);
  return (
    <SpoolProvider client={access.client}>
      <AppShell
        header={{ height: 48 }}
        navbar={{ width: 260, breakpoint: 'sm', collapsed: { mobile: !opened } }}
        className={classes.shell}
      >
        <AppShell.Header>
          <Group h="100%" px="md" gap="xs" wrap="nowrap">
            <Burger
              {...{ opened }}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label="Chats"
              aria-expanded={opened}
            />
            <Image src={icon} alt="" w={22} h={22} />
            <Title order={1} className={classes.brand}>
              Spool
            </Title>
            <Select
              aria-label="Agent"
              data={agents.map(({ id, name }) => ({ value: id, label: name }))}
              value={agentId}
              onChange={(id) => id !== null && navigate(`/${id}`)}
              allowDeselect={false}
              searchable={agents.length > 10}
              className={classes.agents}
            />
            <Group gap="xs" ml="auto" wrap="nowrap">
              {isOperator && (
                <ActionIcon
                  component="a"
                  href={threadId ? `/console/threads/${threadId}` : `/console/agents/${agentId}`}
                  aria-label="Open in the console"
                  title="Open in the console"
                >
                  <IconLayoutDashboard size={18} />
                </ActionIcon>
              )}
              {account}
            </Group>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar p="xs" aria-label="Chats" data-closed={!opened || undefined} className={classes.navbar}>
          <ChatList {...{ access, threadId }} onFollow={close} />
        </AppShell.Navbar>
        <AppShell.Main className={classes.main}>
          <Opened {...{ access, agent, threadId }} />
        </AppShell.Main>
      </AppShell>
    </SpoolProvider>
  );
}

/**
 * The conversation that the address names. Its key does not change when its first message creates the Thread, so typed text and the
 * focus stay.
 */
function Opened({ access, agent, threadId }: Pick<ChatProps, 'access' | 'agent' | 'threadId'>) {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const { agentId } = access;
  const [made, setMade] = useState<{ key: string; threadId: string } | null>(null);
  const [drafts, setDrafts] = useState(0);
  const [unsent] = useState(() => new Map<string, string>());
  const key = threadId !== null && made?.threadId === threadId ? made.key : (threadId ?? `${agentId} ${drafts}`);
  const onCreated = useCallback(
    (id: string, isShown: boolean) => {
      void queries.invalidateQueries({ queryKey: [CHATS, agentId] });
      if (!isShown) return;
      unsent.delete(agentId);
      setMade({ key: `${agentId} ${drafts}`, threadId: id });
      setDrafts((count) => count + 1);
      navigate(`/${agentId}/${id}`, { replace: true });
    },
    [agentId, drafts, navigate, queries, unsent],
  );
  const { run, status } = useThread(threadId);
  useEffect(
    () => void queries.invalidateQueries({ queryKey: [CHATS, agentId] }),
    [queries, agentId, run?.id, run?.status, status],
  );
  return <Conversation key={key} {...{ access, agent, threadId, onCreated, unsent }} />;
}
