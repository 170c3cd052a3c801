import { useQuery } from '@tanstack/react-query';
import type { Spool } from '#client';
import { get } from '../api/client.ts';

export interface ChatAgent {
  id: string;
  name: string;
  description: string;
}

/** Returns the Agents that an operator can talk to, by name. */
export function useChatAgents(): Read & { agents: ChatAgent[] | undefined } {
  const { data, error, refetch } = useQuery({ queryKey: ['chat agents'], queryFn: readAgents });
  return { agents: data, error, retry: () => void refetch() };
}

interface Read {
  error: Error | null;
  retry: () => void;
}

async function readAgents(): Promise<ChatAgent[]> {
  const found: ChatAgent[] = [];
  let cursor: string | undefined;
  do {
    const { agents, nextCursor } = await get('/agents', { query: { limit: PAGE, ...(cursor && { cursor }) } });
    const usable = agents.filter(
      ({ published, apiEnabled, liveVersion }) => published && apiEnabled && liveVersion !== null,
    );
    found.push(...usable.map(({ id, name, description }) => ({ id, name, description })));
    cursor = nextCursor ?? undefined;
  } while (cursor !== undefined && found.length < MAX_AGENTS);
  return found.sort((left, right) => left.name.localeCompare(right.name));
}

const PAGE = 100;
/** More are not listed. Each has a link on its page of the console. */
const MAX_AGENTS = 500;

/** Reads an Agent with a token that may use it. */
export function useLinkedAgent(client: Spool, agentId: string): Read & { agent: ChatAgent | undefined } {
  const { data, error, refetch } = useQuery({
    queryKey: ['chat agent', agentId],
    queryFn: () => client.agent(agentId).get(),
  });
  return { agent: data, error, retry: () => void refetch() };
}
