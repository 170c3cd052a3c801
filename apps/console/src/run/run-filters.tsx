import type { ReactNode } from 'react';
import { Pill, SegmentedControl } from '@mantine/core';
import type { LiveProblem } from '#contract';
import { FilterBar } from '../components/filter-bar.tsx';
import { FilterSelect } from '../components/filter-select.tsx';
import { formatTime } from '../components/format.ts';
import { FilterSuggest } from '../components/filter-suggest.tsx';
import { AgentPicker, OrganizationPicker } from '../components/pickers.tsx';
import { hasEnded, optionsOf, RUN_STATUS, type RunStatusName } from '../components/status-table.ts';
import { WINDOWS } from '../components/windows.ts';
import { PROBLEM_TITLES } from '../overview/problem-words.ts';

export const RUN_FILTERS = [
  'scope',
  'status',
  'agentId',
  'organizationId',
  'errorCode',
  'cause',
  'userId',
  'externalRef',
  'within',
  'endedSince',
  'mayBeRetried',
  'problem',
] as const;
export type RunFilter = Record<(typeof RUN_FILTERS)[number], string>;

/**
 * Returns whether only live Runs are shown. A filter for ended Runs shows all. A filter for a customer, a reference or a cause
 * also shows all if the link has no scope. A problem has live Runs only.
 */
export function showsLive({ scope, status, errorCode, endedSince, mayBeRetried, ...filter }: RunFilter): boolean {
  const hasOfEnded = [errorCode, endedSince, mayBeRetried].some((value) => value !== '');
  if (scope === 'all' || hasOfEnded || hasEnded(status as RunStatusName)) return false;
  if (scope === 'live' || filter.problem !== '') return true;
  return filter.userId === '' && filter.externalRef === '' && filter.cause === '';
}

const SUGGESTED = [
  { of: 'errorCode', label: 'Error', width: 170 },
  { of: 'cause', label: 'Cause', width: 220 },
  { of: 'userId', label: 'Customer', width: 170 },
  { of: 'externalRef', label: 'Reference', width: 170 },
] as const;

interface Props {
  filter: RunFilter;
  change: (changed: Partial<RunFilter>) => void;
}

export function RunFilters({ filter, change }: Props) {
  // The scope chooses between two lists, and is no filter.
  const { scope: _, ...filters } = filter;
  return (
    <FilterBar {...{ filter: filters, change }} label="Filter Runs" lead={<Scope {...{ filter, change }} />}>
      <FilterSelect
        label="Status"
        data={optionsOf(RUN_STATUS)}
        value={filter.status}
        onChange={(status) => change(hasEnded(status as RunStatusName) ? { status, scope: 'all' } : { status })}
      />
      {SUGGESTED.map(({ of, label, width }) => (
        <FilterSuggest
          key={of}
          {...{ of, label }}
          placeholder="Any"
          w={width}
          value={filter[of]}
          // Also shows ended Runs if there is a value.
          onChange={(value) => change(value === '' ? { [of]: value } : { [of]: value, scope: 'all' })}
        />
      ))}
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
      <LinkFilters {...{ filter, change }} />
    </FilterBar>
  );
}

function Scope({ filter, change }: Props) {
  const ofEnded = hasEnded(filter.status as RunStatusName) ? { status: '' } : {};
  return (
    <SegmentedControl
      size="xs"
      aria-label="Which Runs"
      value={showsLive(filter) ? 'live' : 'all'}
      // Filters for ended Runs would match no live Run.
      onChange={(scope) =>
        change(
          scope === 'all' ? { scope } : { scope: 'live', errorCode: '', endedSince: '', mayBeRetried: '', ...ofEnded },
        )
      }
      data={[
        { value: 'live', label: 'Live' },
        { value: 'all', label: 'All' },
      ]}
    />
  );
}

/** The filters that only links of the overview set. */
function LinkFilters({ filter, change }: Props) {
  return (
    <>
      {filter.endedSince !== '' && (
        <RemovablePill onRemove={() => change({ endedSince: '' })}>
          Ended since {formatTime(filter.endedSince)}
        </RemovablePill>
      )}
      {filter.mayBeRetried !== '' && (
        <RemovablePill onRemove={() => change({ mayBeRetried: '' })}>Can be retried</RemovablePill>
      )}
      {filter.problem !== '' && (
        <RemovablePill onRemove={() => change({ problem: '', scope: 'live' })}>
          {PROBLEM_TITLES[filter.problem as LiveProblem]}
        </RemovablePill>
      )}
    </>
  );
}

function RemovablePill({ onRemove, children }: { onRemove: () => void; children: ReactNode }) {
  return (
    <Pill
      withRemoveButton
      size="md"
      onRemove={onRemove}
      removeButtonProps={{ 'aria-label': 'Remove this filter', 'aria-hidden': false, tabIndex: 0 }}
    >
      {children}
    </Pill>
  );
}
