import { Button, Table, Text } from '@mantine/core';
import type { DoctorCheck } from '#contract';
import { useOperation } from '../api/use-operation.ts';
import { QueryState } from '../components/query-state.tsx';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';

const LOOKS: Record<DoctorCheck['status'], { label: string; color: string }> = {
  ok: { label: 'Ok', color: 'teal' },
  warning: { label: 'Warning', color: 'orange' },
  failed: { label: 'Failed', color: 'red' },
};

/** What the process that answers stands on. */
export function Doctor() {
  const query = useOperation('/doctor');
  return (
    <Section
      title="Doctor"
      actions={
        <Button variant="default" loading={query.isFetching} onClick={() => void query.refetch()}>
          Check again
        </Button>
      }
    >
      <QueryState query={query}>
        {({ checks }) => (
          <Table aria-label="Results of Doctor">
            <Table.Tbody>
              {checks.map(({ name, status, message }) => (
                <Table.Tr key={name}>
                  <Table.Th scope="row" w={110}>
                    {name}
                  </Table.Th>
                  <Table.Td w={80}>
                    <StatusBadge color={LOOKS[status].color}>{LOOKS[status].label}</StatusBadge>
                  </Table.Td>
                  <Table.Td>
                    <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
                      {message}
                    </Text>
                  </Table.Td>
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        )}
      </QueryState>
    </Section>
  );
}
