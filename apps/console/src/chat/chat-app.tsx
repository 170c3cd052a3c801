import { useCallback, useEffect, useMemo, useState, type ReactNode } from 'react';
import {
  ActionIcon,
  AppShell,
  Burger,
  Button,
  Center,
  Group,
  Image,
  Paper,
  Select,
  Stack,
  Text,
  Title,
} from '@mantine/core';
import { useDisclosure, useDocumentTitle } from '@mantine/hooks';
import { IconLayoutDashboard } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { Redirect, Router, useLocation, useRoute } from 'wouter';
import { SpoolProvider, useThread } from '#client/react';
import type { Session } from '../api/session.ts';
import { useSession } from '../api/use-session.ts';
import { ConfirmProvider } from '../components/confirm.tsx';
import { ErrorNote, Loading } from '../components/query-state.tsx';
import { AccountMenu, ThemeMenu } from '../frame/account-menu.tsx';
import { ErrorBoundary } from '../frame/error-boundary.tsx';
import { Login } from '../frame/login.tsx';
import icon from '../icon.svg';
import { forgetLink, linkAccess, operatorAccess, takeLink, type Access, type Link } from './access.ts';
import { useChatAgents, useLinkedAgent, type ChatAgent } from './chat-agents.ts';
import { ChatList, CHATS } from './chat-list.tsx';
import classes from './chat.module.css';
import { Conversation } from './conversation.tsx';

/** The page `/chat`: for the signed-in operator, or for the person who holds a link. */
export default function ChatApp() {
  const [link, setLink] = useState(takeLink);
  const leave = (): void => {
    forgetLink();
    setLink(null);
  };
  return (
    <Router base="/chat">
      <ErrorBoundary>
        <ConfirmProvider>{link === null ? <OperatorGate /> : <LinkGate link={link} onLeave={leave} />}</ConfirmProvider>
      </ErrorBoundary>
    </Router>
  );
}

/** Returns the Agent and the Thread of the address. */
function usePlace(): { agentId: string | null; threadId: string | null } {
  const [, params] = useRoute('/:agentId?/:threadId?');
  return { agentId: params?.agentId ?? null, threadId: params?.threadId ?? null };
}

function OperatorGate() {
  const { data: session, error, refetch } = useSession();
  if (session === null) return <Login />;
  if (session !== undefined) return <OperatorChat session={session} />;
  return <Whole>{error ? <ErrorNote error={error} onTryAgain={() => void refetch()} /> : <Loading />}</Whole>;
}

function OperatorChat({ session }: { session: Session }) {
  const { agentId, threadId } = usePlace();
  const { agents, error } = useChatAgents();
  const access = useMemo(() => (agentId === null ? null : operatorAccess(agentId)), [agentId]);
  if (agents === undefined) return <Whole>{error ? <ErrorNote error={error} /> : <Loading />}</Whole>;
  if (access === null) {
    const [first] = agents;
    if (first !== undefined) return <Redirect to={`/${first.id}`} replace />;
    return <Note title="No agent to talk to">Publish an agent with “spool agent apply --publish”, and reload.</Note>;
  }
  const agent = agents.find(({ id }) => id === agentId);
  return <Chat {...{ access, agents, agent, threadId }} account={<AccountMenu session={session} />} isOperator />;
}

function LinkGate({ link, onLeave }: { link: Link; onLeave: () => void }) {
  const { agentId: given, threadId } = usePlace();
  const agentId = link.agentId ?? given;
  const access = useMemo(() => (agentId === null ? null : linkAccess(link, agentId)), [link, agentId]);
  const signIn = <Button onClick={onLeave}>Sign in as an operator</Button>;
  if (access === null) {
    return (
      <Note title="This link names no agent" action={signIn}>
        Ask the person who gave it to you for a link like /chat/AGENT_ID#token=…
      </Note>
    );
  }
  return <LinkChat {...{ access, threadId, signIn }} />;
}

function LinkChat({ access, threadId, signIn }: { access: Access; threadId: string | null; signIn: ReactNode }) {
  const { agent, error } = useLinkedAgent(access.client, access.agentId);
  if ((error as { status?: number } | null)?.status === 401) {
    return (
      <Note title="This link has expired" action={signIn}>
        Your chats are kept. Ask for a new link to continue.
      </Note>
    );
  }
  if (error)
    return (
      <Note title="This link does not work" action={signIn}>
        {error.message}
      </Note>
    );
  if (agent === undefined)
    return (
      <Whole>
        <Loading />
      </Whole>
    );
  return <Chat {...{ access, agents: [agent], agent, threadId }} account={<ThemeMenu />} />;
}

interface ChatProps {
  access: Access;
  agents: ChatAgent[];
  agent: ChatAgent | undefined;
  threadId: string | null;
  account: ReactNode;
  isOperator?: boolean;
}

function Chat({ access, agents, agent, threadId, account, isOperator = false }: ChatProps) {
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

/** The conversation of the address. The one that made its own Thread goes on, with what is typed and the focus. */
function Opened({ access, agent, threadId }: Pick<ChatProps, 'access' | 'agent' | 'threadId'>) {
  const [, navigate] = useLocation();
  const queries = useQueryClient();
  const { agentId } = access;
  const [made, setMade] = useState<{ key: string; threadId: string } | null>(null);
  const [drafts, setDrafts] = useState(0);
  const key = threadId !== null && made?.threadId === threadId ? made.key : (threadId ?? `${agentId} ${drafts}`);
  const onCreated = useCallback(
    (id: string) => {
      setMade({ key: `${agentId} ${drafts}`, threadId: id });
      setDrafts((count) => count + 1);
      navigate(`/${agentId}/${id}`, { replace: true });
    },
    [agentId, drafts, navigate],
  );
  const { run } = useThread(threadId);
  useEffect(
    () => void queries.invalidateQueries({ queryKey: [CHATS, agentId] }),
    [queries, agentId, run?.id, run?.status],
  );
  return <Conversation key={key} {...{ access, agent, threadId, onCreated }} />;
}

function Whole({ children }: { children: ReactNode }) {
  return (
    <Center component="main" mih="100dvh" p="md">
      {children}
    </Center>
  );
}

function Note({ title, action, children }: { title: string; action?: ReactNode; children: ReactNode }) {
  return (
    <Whole>
      <Paper withBorder p="xl" maw={460}>
        <Stack>
          <Title order={1} size="h2">
            {title}
          </Title>
          <Text size="sm">{children}</Text>
          {action}
        </Stack>
      </Paper>
    </Whole>
  );
}
