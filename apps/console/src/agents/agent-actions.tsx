import { Group } from '@mantine/core';
import type { ManagedAgent } from '#contract';
import { useLocation } from 'wouter';
import { post, remove } from '../api/client.ts';
import { useAction } from '../components/action.ts';
import { ActionButton } from '../components/action-button.tsx';
import { ChatLink } from '../components/chat-link.tsx';
import { counted } from '../components/format.ts';
import { TypedDeletion } from '../components/typed-deletion.tsx';

/** The buttons that concern an Agent as a whole. */
export function AgentActions({ agent }: { agent: ManagedAgent }) {
  const params = { agentId: agent.id };
  const target = `Agent ${agent.name}`;
  const publish = useAction(() => post('/agents/{agentId}/publish', { params }), {
    done: `${agent.name} is published.`,
  });
  const unpublish = useAction(() => post('/agents/{agentId}/unpublish', { params }), {
    done: `${agent.name} is no longer published.`,
    ask: {
      title: `Unpublish ${agent.name}?`,
      message: 'Within 5 s, its callers are rejected and their streams end. Running Runs continue.',
      action: 'Unpublish',
      isDangerous: true,
    },
  });
  const enable = useAction(() => post('/agents/{agentId}', { params, body: { apiEnabled: true } }), {
    done: `${agent.name} is enabled for callers.`,
  });
  const disable = useAction(() => post('/agents/{agentId}', { params, body: { apiEnabled: false } }), {
    done: `${agent.name} is disabled for callers.`,
    ask: {
      title: `Disable ${agent.name} for callers?`,
      message: 'It stays published. Callers get an error that it is disabled. Running Runs continue.',
      action: 'Disable',
      isDangerous: true,
    },
  });
  return (
    <Group gap="xs">
      {agent.published && agent.apiEnabled && agent.liveVersion !== null && (
        <ChatLink agentId={agent.id} label="Chat with this agent" />
      )}
      {agent.published ? (
        <ActionButton action={unpublish} label="Unpublish" target={target} />
      ) : (
        <ActionButton action={publish} label="Publish" target={target} variant="filled" />
      )}
      {agent.apiEnabled ? (
        <ActionButton action={disable} label="Disable for callers" target={target} />
      ) : (
        <ActionButton action={enable} label="Enable for callers" target={target} variant="filled" />
      )}
      <DeleteAgent agent={agent} />
    </Group>
  );
}

/** It and its Threads are gone for callers; operators still find it. */
function DeleteAgent({ agent }: { agent: ManagedAgent }) {
  const [, go] = useLocation();
  const deletion = useAction(
    async () => {
      const answer = await remove('/agents/{agentId}', { params: { agentId: agent.id } });
      go('/agents');
      return answer;
    },
    {
      deletes: agent.id,
      done: ({ ended, complete }) =>
        `${agent.name} is deleted; ${counted(ended, 'Thread')} terminated.${complete ? '' : ' Workers terminate the rest.'}`,
    },
  );
  return (
    <TypedDeletion
      {...{ deletion }}
      target={`Agent ${agent.name}`}
      title={`Delete ${agent.name}?`}
      message="Callers can no longer find it or its Threads, and its Threads are terminated."
      wanted={agent.name}
      label={`Type ${agent.name} to delete it`}
    />
  );
}
