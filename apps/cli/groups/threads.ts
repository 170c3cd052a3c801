import type { ManagedThread } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import { agentId, optional, organizationId, personId, tokenId } from '../resolve.ts';
import type { Paging } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { countOf } from '../text.ts';
import { threadFiles } from './files.ts';
import { PAGING } from './paging.ts';
import { runColumns } from './runs.ts';
import { exportThread } from './thread-export.ts';
import { threadEvents } from './thread-events.ts';
import { tail } from './thread-tail.ts';

const STATUSES = ['IDLE', 'RUNNING', 'RESCHEDULING', 'TERMINATED'] as const;

const columns: Column<ManagedThread>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'status', value: ({ status, archived }) => (archived ? `${status}, archived` : status) },
  { head: 'agent', value: ({ agentId }) => agentId, wide: true },
  { head: 'user id', value: ({ userId }) => userId, cut: true, wide: true },
  { head: 'reference', value: ({ externalRef }) => externalRef, cut: true, wide: true },
  { head: 'updated', value: ({ updatedAt }) => updatedAt },
  { head: 'title', value: ({ title }) => title, cut: true },
];

const fieldsOf = (thread: ManagedThread): string =>
  renderFields([
    ...columns.map(({ head, value }) => [head, value(thread)] as const),
    ['organization', thread.organizationName],
    ['organization id', thread.organizationId],
    ['owner', thread.ownerPersonId],
    ['service token', thread.ownerTokenId],
    ['kind', thread.kind],
    ['last run', thread.lastRunId],
    ['created', thread.createdAt],
  ]);

type ListOptions = Paging & {
  org?: string;
  agent?: string;
  owner?: string;
  token?: string;
  userId?: string;
  externalRef?: string;
  search?: string;
  status?: ManagedThread['status'];
  archived?: boolean;
};

const list: CommandSpec<[], ListOptions> = {
  usage: 'list',
  description: 'List Threads, newest first.',
  options: [
    { flags: '--org <org>', description: 'only this organization’s' },
    { flags: '--agent <agent>', description: 'only this Agent’s' },
    { flags: '--owner <person>', description: 'only this person’s' },
    { flags: '--token <token>', description: 'only Threads that this service token created' },
    { flags: '--user-id <id>', description: 'only Threads of this user id of the application' },
    { flags: '--external-ref <ref>', description: 'only Threads with this external reference' },
    {
      flags: '--search <text>',
      description: 'the id of a Thread, Run or user, the external reference, or part of the title',
    },
    { flags: '--status <status>', description: 'only this status', choices: STATUSES },
    { flags: '--archived', description: 'only archived Threads' },
    { flags: '--no-archived', description: 'hide archived Threads' },
    ...PAGING,
  ],
  examples: [
    ['thread list --org Acme --status RUNNING'],
    ['thread list --agent echo --no-archived --all --json'],
    ['thread list --owner "Jo Doe"'],
    ['thread list --search invoice'],
    ['thread list --external-ref order-1042'],
  ],
  async run(session, _, { org, agent, owner, token, userId, externalRef, search, status, archived, ...paging }) {
    const organization = await optional(organizationId, session, org);
    const filter = {
      organizationId: organization,
      agentId: agent === undefined ? undefined : await agentId(session, agent, organization),
      ownerPersonId: await optional(personId, session, owner),
      ownerTokenId: await optional(tokenId, session, token),
      userId,
      externalRef,
      search,
      status,
      archived: archived === undefined ? undefined : (`${archived}` as const),
    };
    await session.printPages(paging, columns, async (page) => {
      const { threads, nextCursor } = await session.call('listThreads', { query: { ...page, ...filter } });
      return { rows: threads, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <threadId>',
  description: 'Show a Thread and its newest Runs.',
  examples: [['thread show 01JD0000000000000000000000']],
  async run(session, [threadId]) {
    const answer = await session.call('getThread', { params: { threadId } });
    const { thread, events, runs } = answer;
    const listed = runs.length === 0 ? 'It has no Runs.' : session.table(runColumns, runs);
    await session.print(answer, `${fieldsOf(thread)}\n${countOf(events, 'event')}\n\n${listed}`);
  },
};

const putAway = (
  spec: Pick<CommandSpec<[string]>, 'usage' | 'description' | 'examples'>,
  operation: 'archiveThread' | 'unarchiveThread',
): CommandSpec<[string]> => ({
  ...spec,
  async run(session, [threadId]) {
    const { thread } = await session.call(operation, { params: { threadId } });
    await session.print(thread, fieldsOf(thread));
  },
});

const archive = putAway(
  {
    usage: 'archive <threadId>',
    description: 'Archive a Thread that has no active Run.',
    examples: [['thread archive 01JD0000000000000000000000']],
  },
  'archiveThread',
);

const unarchive = putAway(
  {
    usage: 'unarchive <threadId>',
    description: 'Unarchive a Thread.',
    examples: [['thread unarchive 01JD0000000000000000000000']],
  },
  'unarchiveThread',
);

const terminate: CommandSpec<[string]> = {
  usage: 'terminate <threadId>',
  description: 'Terminate a Thread permanently and cancel its Runs. It stays readable.',
  examples: [['thread terminate 01JD0000000000000000000000'], ['thread terminate 01JD0000000000000000000000 --yes']],
  asks: ([threadId]) => `Terminate Thread ${threadId} permanently?`,
  async run(session, [threadId]) {
    const { thread } = await session.call('terminateThread', { params: { threadId } });
    await session.print(thread, fieldsOf(thread));
  },
};

const remove: CommandSpec<[string]> = {
  usage: 'delete <threadId>',
  description: 'Delete a Thread permanently, with its events and files.',
  examples: [['thread delete 01JD0000000000000000000000'], ['thread delete 01JD0000000000000000000000 --yes']],
  asks: ([threadId]) => `Delete Thread ${threadId} with all its events and files?`,
  async run(session, [threadId]) {
    await session.print(await session.call('deleteThread', { params: { threadId } }), `${threadId} is deleted.`);
  },
};

export const threads: Group = {
  name: 'thread',
  description: 'Threads of all users.',
  commands: [list, show, tail, threadEvents, exportThread, threadFiles, archive, unarchive, terminate, remove],
};
