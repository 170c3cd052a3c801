import { useState } from 'react';
import { MultiSelect, Select, type SelectProps } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import { useOperation } from '../api/use-operation.ts';
import { choices, type Named } from './choices.ts';

interface PickerProps extends Pick<SelectProps, 'placeholder' | 'required'> {
  label: string;
  /** An id; '' for none. */
  value: string;
  onChange: (id: string) => void;
}

/** A field that picks an organization. Lists the newest hundred, and finds others by their exact name. */
export function OrganizationPicker({ value, ...props }: PickerProps) {
  const { wanted, setTyped } = useTyped();
  const newest = useOperation('/organizations', { query: { limit: 100 } });
  const named = useOperation('/organizations', { query: { name: wanted } }, { enabled: wanted !== '' });
  const picked = useOperation(
    '/organizations/{organizationId}',
    { params: { organizationId: value } },
    { enabled: value !== '' },
  );
  const offered = [newest.data?.organizations, named.data?.organizations, only(picked.data?.organization, value)];
  return <Picker {...props} value={value} offered={offered} onSearch={setTyped} />;
}

/** A field that picks a person, like OrganizationPicker. With `organizationId`, it has only members. */
export function PersonPicker({ value, organizationId, ...props }: PickerProps & { organizationId?: string }) {
  const { wanted, setTyped } = useTyped();
  const newest = useOperation('/people', { query: { organizationId, limit: 100 } });
  const named = useOperation('/people', { query: { organizationId, name: wanted } }, { enabled: wanted !== '' });
  const picked = useOperation('/people/{personId}', { params: { personId: value } }, { enabled: value !== '' });
  const offered = [newest.data?.people, named.data?.people, only(picked.data?.person, value)];
  return <Picker {...props} value={value} offered={offered} onSearch={setTyped} />;
}

/** A field that picks an Agent, like OrganizationPicker. */
export function AgentPicker({ value, ...props }: PickerProps) {
  const { wanted, setTyped } = useTyped();
  const newest = useOperation('/agents', { query: { limit: 100 } });
  const named = useOperation('/agents', { query: { name: wanted } }, { enabled: wanted !== '' });
  const picked = useOperation('/agents/{agentId}', { params: { agentId: value } }, { enabled: value !== '' });
  const offered = [newest.data?.agents, named.data?.agents, only(picked.data?.agent, value)];
  return <Picker {...props} value={value} offered={offered} onSearch={setTyped} />;
}

/** A field that picks Agents of one organization. */
export function AgentsPicker(props: { organizationId: string; value: string[]; onChange: (ids: string[]) => void }) {
  const { organizationId, value, onChange } = props;
  const agents = useOperation('/agents', { query: { organizationId, limit: 100 } }, { enabled: organizationId !== '' });
  return (
    <MultiSelect
      label="Agents it may call"
      placeholder={organizationId === '' ? 'Choose an organization first' : ''}
      required
      searchable
      size="xs"
      disabled={organizationId === ''}
      data={organizationId === '' ? [] : choices(agents.data?.agents)}
      value={value}
      onChange={onChange}
      nothingFoundMessage="No such Agent"
    />
  );
}

function useTyped() {
  const [typed, setTyped] = useState('');
  const [wanted] = useDebouncedValue(typed.trim(), 250);
  return { wanted, setTyped };
}

/** Returns the record only if it has this id. While another one is read, the query still has the previous one. */
const only = (found: Named | undefined, id: string): Named[] => (found?.id === id ? [found] : []);

interface OfferProps extends PickerProps {
  offered: (readonly Named[] | undefined)[];
  onSearch: (typed: string) => void;
}

function Picker({ offered, value, onChange, onSearch, ...props }: OfferProps) {
  return (
    <Select
      placeholder="Any"
      w={props.required ? undefined : 170}
      {...props}
      searchable
      clearable={!props.required}
      data={choices(...offered)}
      value={value === '' ? null : value}
      onChange={(id) => onChange(id ?? '')}
      onSearchChange={onSearch}
      nothingFoundMessage="No match"
    />
  );
}
