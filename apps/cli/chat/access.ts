import { Spool, SpoolError } from '#client';
import type { ManagedAgent } from '#contract';
import { CommandError, exitOfCode, type ExitName } from '../exit-codes.ts';
import { askLine } from '../prompt.ts';
import { agentId as findAgentId, optional, organizationId } from '../resolve.ts';
import type { Session } from '../session.ts';
import { showInLine } from '../text.ts';

export interface ChatOptions {
  org?: string;
  thread?: string;
  continue?: true;
  yes?: true;
}

/** The Agent of a chat, and the client that reaches it as the operator. */
export interface Access {
  client: Spool;
  agentId: string;
  agentName: string;
  /** The `userId` of the operator's Threads. */
  userId: string;
  /** The Thread to continue; null starts a new one. */
  threadId: string | null;
}

/** Chooses the Agent and the Thread, and creates chat tokens for them. Throws CommandError. */
export async function openAccess(session: Session, agent: string | undefined, options: ChatOptions): Promise<Access> {
  if (options.thread !== undefined && options.continue) {
    throw new CommandError('usage', '--thread and --continue cannot be used together.');
  }
  const baseUrl = await session.apiUrl();
  const agentId = await chooseAgent(session, agent, options);
  const createToken = () => session.call('createChatToken', { body: { agentId } });
  const first = await createToken();
  let unused: typeof first | null = first;
  const getToken = async () => {
    const token = unused ?? (await createToken().catch(refuse));
    unused = null;
    return token;
  };
  const client = new Spool({ baseUrl, getToken });
  const { userId } = first;
  const { name: agentName } = await client.agent(agentId).get().catch(toCommandError);
  const threadId = options.thread ?? null;
  if (threadId !== null) await client.thread(threadId).get().catch(toCommandError);
  const access = { client, agentId, agentName, userId };
  return { ...access, threadId: options.continue ? await newestThread(access) : threadId };
}

async function newestThread({ client, agentId, userId }: Omit<Access, 'threadId'>): Promise<string | null> {
  const { threads } = await client.threads.list({ agentId, userId, limit: 1 }).catch(toCommandError);
  return threads[0]?.id ?? null;
}

async function chooseAgent(session: Session, given: string | undefined, { org, thread }: ChatOptions): Promise<string> {
  const organization = await optional(organizationId, session, org);
  const named = given === undefined ? undefined : await findAgentId(session, given, organization);
  if (thread !== undefined) {
    const { agentId, agentName } = (await session.call('getThread', { params: { threadId: thread } })).thread;
    if (named === undefined || named === agentId) return agentId;
    throw new CommandError('usage', `The Thread belongs to another Agent, ${showInLine(agentName)}.`);
  }
  return named ?? chooseUsable(session, await usableAgents(session, organization));
}

async function usableAgents(session: Session, organization: string | undefined): Promise<ManagedAgent[]> {
  const usable: ManagedAgent[] = [];
  let cursor: string | undefined;
  do {
    const page = await session.call('listAgents', { query: { organizationId: organization, cursor } });
    usable.push(...page.agents.filter((each) => each.published && each.apiEnabled && each.liveVersion !== null));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  return usable;
}

async function chooseUsable(session: Session, agents: readonly ManagedAgent[]): Promise<string> {
  if (agents.length === 0)
    throw new CommandError('notFound', 'No Agent can be used. Publish one and switch on its API access.');
  if (agents.length === 1) return agents[0]!.id;
  const names = agents.map(({ name, organizationName }) => `${showInLine(name)} (${showInLine(organizationName)})`);
  if (!session.isTerminal) {
    const ids = agents.map(({ id }, i) => `\n  ${id}  ${names[i]}`);
    throw new CommandError('usage', `There are ${agents.length} Agents; name one: spool chat AGENT${ids.join('')}`);
  }
  for (const [i, name] of names.entries()) session.note(`${String(i + 1).padStart(3)}  ${name}`);
  const chosen = agents[Number(await askLine('Number of the Agent: ')) - 1];
  if (chosen === undefined) throw new CommandError('usage', 'No Agent was chosen; type a number from the list.');
  return chosen.id;
}

/** An internal error of the service has the exit `failed`. */
const TRANSIENT: readonly ExitName[] = ['away', 'failed'];

/** Throws a refusal with a final status, so that the client does not call getToken again. */
function refuse(error: unknown): never {
  const isFinal = error instanceof CommandError && !TRANSIENT.includes(error.exit);
  throw isFinal ? Object.assign(error, { status: 403 }) : error;
}

/** Throws a SpoolError as a CommandError with its exit code. Throws other errors unchanged. */
export function toCommandError(error: unknown): never {
  if (!(error instanceof SpoolError)) throw error;
  if (error.cause instanceof CommandError) throw error.cause;
  const isAway = error.code === 'no_response' || error.code === 'invalid_response';
  throw new CommandError(isAway ? 'away' : exitOfCode(error.code), error.message, { cause: error });
}
