import { SegmentedControl } from '@mantine/core';
import { FilterBar } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { AgentPicker, OrganizationPicker } from '../components/pickers.tsx';
import { hasEnded, optionsOf, RUN_STATUS, type RunStatusName } from '../components/status-table.ts';
import { WINDOWS } from '../components/windows.ts';

export const RUN_FILTERS = [
  'scope',
  'status',
  'agentId',
  'organizationId',
  'errorCode',
  'cause',
  'userId',
  'within',
] as const;
export type RunFilter = Record<(typeof RUN_FILTERS)[number], string>;

interface Props {
  filter: RunFilter;
  change: (changed: Partial<RunFilter>) => void;
}

export function RunFilters({ filter, change }: Props) {
  // The choice between the two lists is not a filter.
  const { scope: shown, ...filters } = filter;
  const isOfEnded = filter.errorCode !== '' || filter.cause !== '' || hasEnded(filter.status as RunStatusName);
  return (
    <FilterBar {...{ filter: filters, change }} label="Filter Runs">
      <SegmentedControl
        size="xs"
        aria-label="Which Runs"
        value={shown === 'all' ? 'all' : 'live'}
        // Filters for ended Runs would match no live Run.
        onChange={(scope) =>
          change(
            scope === 'all' ? { scope } : { scope: '', ...(isOfEnded ? { status: '', errorCode: '', cause: '' } : {}) },
          )
        }
        data={[
          { value: 'live', label: 'Live' },
          { value: 'all', label: 'All' },
        ]}
      />
      <FilterSelect
        label="Status"
        data={optionsOf(RUN_STATUS)}
        value={filter.status}
        onChange={(status) => change(hasEnded(status as RunStatusName) ? { status, scope: 'all' } : { status })}
      />
      <AgentPicker label="Agent" value={filter.agentId} onChange={(agentId) => change({ agentId })} />
      <OrganizationPicker
        label="Organization"
        value={filter.organizationId}
        onChange={(organizationId) => change({ organizationId })}
      />
      <FilterSelect
        label="Created"
        data={WINDOWS.map(({ value, label }) => ({ value, label: `Last ${label}` }))}
        value={filter.within}
        onChange={(within) => change({ within })}
      />
      <FilterText
        label="Error code"
        placeholder="Exact code"
        value={filter.errorCode}
        onChange={(errorCode) => change(errorCode === '' ? { errorCode } : { errorCode, scope: 'all' })}
      />
      <FilterText
        label="Cause"
        placeholder="As the list shows it"
        value={filter.cause}
        onChange={(cause) => change(cause === '' ? { cause } : { cause, scope: 'all' })}
      />
      <FilterText
        label="User id"
        placeholder="Exact id"
        value={filter.userId}
        onChange={(userId) => change(userId === '' ? { userId } : { userId, scope: 'all' })}
      />
    </FilterBar>
  );
}
