import { useState } from 'react';
import { Anchor, Code, Group, Switch, Table, Text, TextInput, UnstyledButton } from '@mantine/core';
import { IconChevronDown, IconChevronRight } from '@tabler/icons-react';
import type { AuditEntry } from '#contract';
import { usePages } from '../api/use-pages.ts';
import { ACTION_GROUPS, fromLocalInput, targetOf, toLocalInput } from '../audit/target-page.ts';
import { Ago } from '../components/ago.tsx';
import { FilterBar, isFiltered } from '../components/filter-bar.tsx';
import { FilterText } from '../components/filter-text.tsx';
import { JsonBlock } from '../components/json-block.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { QueryState } from '../components/query-state.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { useUrlFilter } from '../components/url-filter.ts';

const PAGE = 25;
const FILTERS = ['actorId', 'action', 'targetId', 'since', 'sessions'] as const;
type Filter = Record<(typeof FILTERS)[number], string>;

/** Returns whether sign-ins are shown. They are hidden unless a filter asks for them. */
const showsSessions = ({ sessions, action }: Filter): boolean => sessions === 'true' || action.startsWith('session');

export default function AuditPage() {
  const [filter, change] = useUrlFilter(FILTERS);
  const entries = usePages(
    '/audit',
    {
      query: {
        limit: PAGE,
        actorId: filter.actorId || undefined,
        action: filter.action || undefined,
        targetId: filter.targetId || undefined,
        since: filter.since || undefined,
        sessions: showsSessions(filter) ? undefined : ('false' as const),
      },
    },
    'entries',
  );
  return (
    <>
      <PageTitle title="Audit log" />
      <AuditFilters {...{ filter, change }} />
      <QueryState
        query={entries.query}
        isEmpty={(items) => items.length === 0}
        empty={isFiltered(filter) ? 'No entry matches these filters.' : 'No entries yet.'}
      >
        {(items) => <AuditTable entries={items} onActor={(actorId) => change({ actorId })} />}
      </QueryState>
      <LoadMore pages={entries} />
    </>
  );
}

function AuditFilters({ filter, change }: { filter: Filter; change: (changed: Partial<Filter>) => void }) {
  return (
    <FilterBar {...{ filter, change }} label="Filter the audit log">
      <FilterText
        label="Actor"
        placeholder="Id of a token"
        value={filter.actorId}
        onChange={(actorId) => change({ actorId })}
      />
      <FilterText
        label="Action"
        placeholder="For example token"
        suggestions={ACTION_GROUPS}
        value={filter.action}
        onChange={(action) => change({ action })}
      />
      <FilterText
        label="Target"
        placeholder="Id of what was changed"
        value={filter.targetId}
        onChange={(targetId) => change({ targetId })}
      />
      <TextInput
        label="Since"
        type="datetime-local"
        value={toLocalInput(filter.since)}
        onChange={(event) => change({ since: fromLocalInput(event.currentTarget.value) })}
      />
      <Switch
        size="xs"
        mb={8}
        label="Sign-ins"
        checked={showsSessions(filter)}
        onChange={(event) => change({ sessions: event.currentTarget.checked ? 'true' : '' })}
      />
    </FilterBar>
  );
}

interface TableProps {
  entries: AuditEntry[];
  onActor: (actorId: string) => void;
}

function AuditTable({ entries, onActor }: TableProps) {
  return (
    <RecordTable aria-label="Audit log" minWidth={640} columns={['Action', 'Target', 'Actor', 'Time']}>
      {entries.map((entry) => (
        <EntryRows key={entry.id} entry={entry} onActor={onActor} />
      ))}
    </RecordTable>
  );
}

function EntryRows({ entry, onActor }: { entry: AuditEntry; onActor: (actorId: string) => void }) {
  const [isOpen, setOpen] = useState(false);
  const { occurredAt, actor, action, targetId, details } = entry;
  const name = typeof details.name === 'string' ? details.name : '';
  return (
    <>
      <RecordRow>
        <Table.Td>
          <UnstyledButton
            onClick={() => setOpen(!isOpen)}
            aria-expanded={isOpen}
            aria-label={`Details of ${action} ${entry.id}`}
          >
            <Group gap={4} wrap="nowrap">
              {isOpen ? <IconChevronDown size={14} aria-hidden /> : <IconChevronRight size={14} aria-hidden />}
              <Code>{action}</Code>
            </Group>
          </UnstyledButton>
        </Table.Td>
        <Table.Td>
          <Group gap="xs" wrap="nowrap">
            {name !== '' && <Text size="sm">{name}</Text>}
            {targetId === null ? 'the installation' : <ShortId id={targetId} {...targetOf(entry)} />}
          </Group>
        </Table.Td>
        <Table.Td>
          <Anchor component="button" type="button" size="sm" onClick={() => onActor(actor.id)} title={actor.id}>
            {actor.name}
          </Anchor>
        </Table.Td>
        <Table.Td style={{ whiteSpace: 'nowrap' }}>
          <Ago time={occurredAt} />
        </Table.Td>
      </RecordRow>
      {isOpen && (
        <RecordRow>
          <Table.Td colSpan={4} maw={0}>
            <Details entry={entry} />
          </Table.Td>
        </RecordRow>
      )}
    </>
  );
}

function Details({ entry }: { entry: AuditEntry }) {
  const { id, occurredAt, actor, organizationId, details } = entry;
  const shown = { id, occurredAt, actor, organizationId, details };
  return <JsonBlock value={shown} label={`Details of entry ${id}`} />;
}
