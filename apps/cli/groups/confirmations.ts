import type { WaitingRun } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import { agentId, optional, organizationId } from '../resolve.ts';
import type { Paging } from '../session.ts';
import type { Column } from '../table.ts';
import { PAGING } from './paging.ts';

type Asked = Omit<WaitingRun, 'requests'> & WaitingRun['requests'][number];

const columns: Column<Asked>[] = [
  { head: 'thread', value: ({ threadId }) => threadId },
  { head: 'request', value: ({ requestId }) => requestId },
  { head: 'tool', value: ({ toolName }) => toolName, cut: true },
  { head: 'input', value: ({ toolInput }) => JSON.stringify(toolInput), cut: true, wide: true },
  { head: 'agent', value: ({ agentName }) => agentName, cut: true, wide: true },
  { head: 'since', value: ({ since }) => since, wide: true },
  { head: 'until', value: ({ expiresAt }) => expiresAt, wide: true },
];

const list: CommandSpec<[], Paging & { thread?: string; org?: string; agent?: string }> = {
  usage: 'list',
  description: 'List unanswered confirmation requests of Runs, newest Run first.',
  options: [
    { flags: '--thread <threadId>', description: 'only this Thread’s' },
    { flags: '--org <org>', description: 'only this organization’s' },
    { flags: '--agent <agent>', description: 'only this Agent’s' },
    ...PAGING,
  ],
  examples: [['confirmation list'], ['confirmation list --agent echo --json']],
  async run(session, _, { thread, org, agent, ...paging }) {
    const organization = await optional(organizationId, session, org);
    const filter = {
      threadId: thread,
      organizationId: organization,
      agentId: agent === undefined ? undefined : await agentId(session, agent, organization),
    };
    await session.printPages(paging, columns, async (page) => {
      const { waiting, nextCursor } = await session.call('listConfirmations', { query: { ...page, ...filter } });
      const rows = waiting.flatMap(({ requests, ...run }) => requests.map((request) => ({ ...run, ...request })));
      return { rows, next: nextCursor };
    });
  },
};

const DECISIONS = { allow: 'allow_once', reject: 'reject_once' } as const;

const answer: CommandSpec<[string, string, keyof typeof DECISIONS]> = {
  usage: 'answer <threadId> <requestId> <decision>',
  description:
    'Answer a confirmation request on behalf of the user. The Run continues once all its requests are answered.',
  argumentChoices: { decision: Object.keys(DECISIONS) },
  examples: [
    ['confirmation answer 01JD0000000000000000000000 01JD0000000000000000000001 reject'],
    ['confirmation answer 01JD0000000000000000000000 01JD0000000000000000000001 allow --yes'],
  ],
  asks: ([, , decision]) => (decision === 'allow' ? 'Allow this tool call?' : null),
  async run(session, [threadId, requestId, decision]) {
    const body = { decision: DECISIONS[decision] };
    const { run } = await session.call('answerConfirmation', { params: { threadId, requestId }, body });
    await session.print(run, `Answered. The Run ${run.id} is ${run.status}.`);
  },
};

export const confirmations: Group = {
  name: 'confirmation',
  description: 'Confirmation requests of Runs.',
  commands: [list, answer],
};
