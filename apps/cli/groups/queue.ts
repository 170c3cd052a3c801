import type { QueueStatus } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import type { Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';

const workerColumns: Column<QueueStatus['workers'][number]>[] = [
  { head: 'worker', value: ({ holder }) => holder },
  { head: 'slots', value: ({ slots }) => slots },
  { head: 'leased', value: ({ leased }) => leased },
  { head: 'seen', value: ({ seenAt }) => seenAt },
];

const PAUSED_BY = { spool: 'an operator', bullmq: 'a BullMQ tool' };

async function print(session: Session, queue: QueueStatus): Promise<void> {
  const { runs, workers } = queue;
  const fields = renderFields([
    ['name', queue.name],
    ['kept in', queue.backend],
    ['paused since', queue.pausedAt],
    ['paused by', queue.pausedBy?.map((by) => PAUSED_BY[by]).join(' and ')],
    ['away since', queue.awaySince],
    ['offered jobs', queue.offered],
    ['ready Runs', runs.ready],
    ['leased Runs', runs.leased],
    ['waiting Runs', runs.waiting],
    ['delayed Runs', runs.delayed],
    ['limited Runs', runs.limited],
    ['oldest ready, ms', queue.oldestReadyMs],
  ]);
  const listed = workers.length === 0 ? 'No worker is alive.' : session.table(workerColumns, workers);
  await session.print(queue, `${fields}\n\n${listed}`);
}

const command = (
  spec: Pick<CommandSpec<[]>, 'usage' | 'description' | 'examples' | 'asks'>,
  operation: 'getQueue' | 'pauseQueue' | 'resumeQueue',
): CommandSpec<[]> => ({
  ...spec,
  run: async (session) => print(session, (await session.call(operation)).queue),
});

export const queue: Group = {
  name: 'queue',
  description: 'The queue of Runs, and the workers.',
  commands: [
    command(
      {
        usage: 'status',
        description: 'Show the state of the queue and the workers.',
        examples: [['queue status'], ['queue status --json']],
      },
      'getQueue',
    ),
    command(
      {
        usage: 'pause',
        description: 'Pause the queue: no Run starts. Running Runs continue, and messages are still accepted.',
        examples: [['queue pause'], ['queue pause --yes', 'in a script']],
        asks: () => 'Start no Run until the queue is resumed?',
      },
      'pauseQueue',
    ),
    command({ usage: 'resume', description: 'Resume the queue.', examples: [['queue resume']] }, 'resumeQueue'),
  ],
};
