import { Text } from '@mantine/core';
import { usePages } from '../api/use-pages.ts';
import { ConfirmationTable } from '../components/confirmation-table.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';

/** All Runs that wait for a person, and what they ask. */
export default function ConfirmationsPage() {
  const waiting = usePages('/confirmations', { query: { limit: 25 } }, 'waiting', { refetchInterval: 5_000 });
  return (
    <>
      <PageTitle title="Confirmations" />
      <Text size="sm" c="dimmed" mb="md">
        Runs that wait until a person allows or rejects a tool call. An answer given here replaces that of the Thread’s
        people and is written to the audit log.
      </Text>
      <QueryState query={waiting.query} isEmpty={(runs) => runs.length === 0} empty="No Run waits for a person.">
        {(runs) => <ConfirmationTable waiting={runs} hasMore={waiting.hasMore} />}
      </QueryState>
      <LoadMore pages={waiting} />
    </>
  );
}
