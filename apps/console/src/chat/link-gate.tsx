import { useEffect, useMemo, useState, type ReactNode } from 'react';
import { Button } from '@mantine/core';
import { Link as RouteLink } from 'wouter';
import { useSession } from '../api/use-session.ts';
import { Loading } from '../components/query-state.tsx';
import { LinkMenu } from '../frame/account-menu.tsx';
import { keepLink, linkAccess, type Access, type Link } from './access.ts';
import { useLinkedAgent } from './chat-agents.ts';
import { Chat, usePlace } from './chat-frame.tsx';
import { withoutDirections } from './markdown-rules.ts';
import { Note, Whole } from './note.tsx';

interface Props {
  link: Link;
  onLeave: () => void;
}

/** The page for a person with a link. Asks a signed-in operator first, because somebody else can have sent the link. */
export function LinkGate({ link, onLeave }: Props) {
  const { data: session, error } = useSession();
  const [isAccepted, setAccepted] = useState(!link.isNew);
  const [wasAsked, setAsked] = useState(false);
  // Stays asked if the session ends meanwhile.
  if (session && !wasAsked) setAsked(true);
  const isUsed = isAccepted || (session === null && !wasAsked);
  const accept = (): void => {
    keepLink(link);
    setAccepted(true);
  };
  useEffect(() => {
    if (isUsed && link.isNew) keepLink(link);
  }, [isUsed, link]);
  if (session === undefined && error === null && !isAccepted) {
    return (
      <Whole>
        <Loading />
      </Whole>
    );
  }
  if (!isUsed) {
    const name = session?.operator.name;
    return (
      <Note
        title="Use this link?"
        action={
          <>
            <Button onClick={accept}>Chat as {withoutDirections(link.userId)}</Button>
            <Button variant="default" onClick={onLeave}>
              {name === undefined ? 'Leave this link' : `Stay ${name}`}
            </Button>
          </>
        }
      >
        {name !== undefined && `You are signed in as ${name}. `}
        With this link, you chat as another user. The person who gave you the link may be able to read these chats.
      </Note>
    );
  }
  return <LinkPlace {...{ link, onLeave }} />;
}

function LinkPlace({ link, onLeave }: Props) {
  const { agentId: given, threadId } = usePlace();
  const agentId = link.agentId ?? given;
  const access = useMemo(() => (agentId === null ? null : linkAccess(link, agentId)), [link, agentId]);
  const leave = (
    <Button variant="default" onClick={onLeave}>
      Leave this link
    </Button>
  );
  if (access === null) {
    return (
      <Note title="This link names no agent" action={leave}>
        Ask the person who gave it to you for a link like /chat/AGENT_ID#token=…
      </Note>
    );
  }
  if (given !== null && given !== agentId) {
    const open = (
      <Button component={RouteLink} href={`/${agentId}`}>
        Open the agent of this link
      </Button>
    );
    return (
      <Note
        title="This link is for another agent"
        action={
          <>
            {open}
            {leave}
          </>
        }
      >
        The address names an agent that the link does not allow.
      </Note>
    );
  }
  const menu = <LinkMenu userId={withoutDirections(link.userId)} onLeave={onLeave} />;
  return <LinkChat {...{ access, threadId, leave, menu }} />;
}

interface LinkChatProps {
  access: Access;
  threadId: string | null;
  leave: ReactNode;
  menu: ReactNode;
}

function LinkChat({ access, threadId, leave, menu }: LinkChatProps) {
  const { agent, error, retry } = useLinkedAgent(access.client, access.agentId);
  if (agent !== undefined) return <Chat {...{ access, agents: [agent], agent, threadId }} account={menu} />;
  if (error === null) {
    return (
      <Whole>
        <Loading />
      </Whole>
    );
  }
  if ((error as { status?: number }).status === 401) {
    return (
      <Note title="This link does not work any more" action={leave}>
        It has expired, or it was not copied in full. Your chats are kept. Ask for a new link to continue.
      </Note>
    );
  }
  const again = <Button onClick={retry}>Try again</Button>;
  return (
    <Note
      title="This link does not work"
      action={
        <>
          {again}
          {leave}
        </>
      }
    >
      {error.message}
    </Note>
  );
}
