import { useEffect, useMemo, useState } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { Redirect, Router } from 'wouter';
import type { Session } from '../api/session.ts';
import { forgetAnswers, useSession } from '../api/use-session.ts';
import { ConfirmProvider } from '../components/confirm.tsx';
import { ErrorNote, Loading } from '../components/query-state.tsx';
import { AccountMenu } from '../frame/account-menu.tsx';
import { ErrorBoundary } from '../frame/error-boundary.tsx';
import { Login } from '../frame/login.tsx';
import { forgetLink, operatorAccess, readLink } from './access.ts';
import { useChatAgents } from './chat-agents.ts';
import { Chat, usePlace } from './chat-frame.tsx';
import { LinkGate } from './link-gate.tsx';
import { Note, Whole } from './note.tsx';

/** The page `/chat`: for the signed-in operator, or for the person who holds a link. */
export default function ChatApp() {
  const queries = useQueryClient();
  const [link, setLink] = useState(readLink);
  useEffect(() => {
    // A link that is pasted into an open tab changes only the fragment.
    const follow = (): void => {
      const next = readLink();
      if (!next?.isNew) return;
      forgetAnswers(queries);
      setLink(next);
    };
    window.addEventListener('hashchange', follow);
    return () => window.removeEventListener('hashchange', follow);
  }, [queries]);
  const leave = (): void => {
    forgetLink();
    forgetAnswers(queries);
    setLink(null);
  };
  return (
    <Router base="/chat">
      <ErrorBoundary>
        <ConfirmProvider>
          {link === null ? <OperatorGate /> : <LinkGate key={link.token} link={link} onLeave={leave} />}
        </ConfirmProvider>
      </ErrorBoundary>
    </Router>
  );
}

function OperatorGate() {
  const { data: session, error, refetch } = useSession();
  if (session === null) return <Login />;
  if (session !== undefined) return <OperatorChat session={session} />;
  return <Whole>{error ? <ErrorNote error={error} onTryAgain={() => void refetch()} /> : <Loading />}</Whole>;
}

function OperatorChat({ session }: { session: Session }) {
  const { agentId, threadId } = usePlace();
  const { agents, error, retry } = useChatAgents();
  const access = useMemo(() => (agentId === null ? null : operatorAccess(agentId)), [agentId]);
  if (agents === undefined)
    return <Whole>{error ? <ErrorNote error={error} onTryAgain={retry} /> : <Loading />}</Whole>;
  if (access === null) {
    const [first] = agents;
    if (first !== undefined) return <Redirect to={`/${first.id}`} replace />;
    return <Note title="No agent to talk to">Publish an agent with “spool agent apply --publish”, and reload.</Note>;
  }
  const agent = agents.find(({ id }) => id === agentId);
  return <Chat {...{ access, agents, agent, threadId }} account={<AccountMenu session={session} />} isOperator />;
}
