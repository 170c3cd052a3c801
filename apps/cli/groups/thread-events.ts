import type { AnswerOf } from '../admin-client.ts';
import type { CommandSpec } from '../command-spec.ts';
import type { Paging } from '../session.ts';
import type { Column } from '../table.ts';
import { PAGING } from './paging.ts';

export const eventColumns: Column<AnswerOf<'listThreadEvents'>['events'][number]>[] = [
  { head: 'version', value: ({ version }) => version },
  { head: 'at', value: ({ occurredAt }) => occurredAt },
  { head: 'type', value: ({ type }) => type },
  { head: 'run', value: ({ runId }) => runId, wide: true },
  { head: 'attempt', value: ({ attempt }) => attempt, wide: true },
  { head: 'data', value: ({ data }) => JSON.stringify(data), cut: true },
];

export const threadEvents: CommandSpec<[string], Paging> = {
  usage: 'events <threadId>',
  description: 'List the stored events of a Thread, newest first.',
  options: PAGING,
  examples: [
    ['thread events 01JD0000000000000000000000 --limit 20'],
    ['thread events 01JD0000000000000000000000 --all --json'],
  ],
  async run(session, [threadId], paging) {
    await session.printPages(paging, eventColumns, async ({ limit, cursor }) => {
      const query = { limit, before: cursor };
      const { events, nextBefore } = await session.call('listThreadEvents', { params: { threadId }, query });
      return { rows: events, next: nextBefore === null ? null : String(nextBefore) };
    });
  },
};
