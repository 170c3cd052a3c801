import { useState, type FormEvent, type ReactNode } from 'react';
import { Button, Group, Table } from '@mantine/core';
import { post, remove } from '../api/client.ts';
import { useAction } from '../components/action.ts';
import { ActionButton } from '../components/action-button.tsx';
import { RecordRow } from '../components/record-table.tsx';

interface Named {
  id: string;
  name: string;
}

interface RowProps {
  organization: Named;
  person: Named;
  /** The cells before the actions. */
  children: ReactNode;
}

/** The row of a member of an organization, with a button that removes the member. */
export function MembershipRow({ organization, person, children }: RowProps) {
  const params = { organizationId: organization.id, personId: person.id };
  const end = useAction(() => remove('/organizations/{organizationId}/members/{personId}', { params }), {
    done: `${person.name} is no longer a member of ${organization.name}.`,
    ask: {
      title: `Remove ${person.name} from ${organization.name}?`,
      message: `Within 5 s they can no longer use the Agents of ${organization.name}, and their open streams end.`,
      action: 'Remove',
      isDangerous: true,
    },
  });
  return (
    <RecordRow>
      {children}
      <Table.Td ta="right">
        <ActionButton action={end} label="Remove" target={`${person.name} from ${organization.name}`} size="xs" />
      </Table.Td>
    </RecordRow>
  );
}

interface AddProps {
  /** The accessible name of the form. */
  label: string;
  /** The message after success. */
  done: string;
  /** Returns the membership for the picked id. */
  membershipOf: (picked: string) => { organizationId: string; personId: string };
  /** Returns the field that picks the person or the organization. `picked` is '' for none. */
  children: (picked: string, pick: (id: string) => void) => ReactNode;
}

/** A form that adds a person to an organization. */
export function AddMembership({ label, done, membershipOf, children }: AddProps) {
  const [picked, pick] = useState('');
  const add = useAction(
    () => {
      const { organizationId, personId } = membershipOf(picked);
      return post('/organizations/{organizationId}/members', { params: { organizationId }, body: { personId } });
    },
    { done },
  );
  const submit = async () => {
    if ((await add.act()) !== undefined) pick('');
  };
  return (
    <Group
      component="form"
      align="flex-end"
      gap="sm"
      mt="sm"
      aria-label={label}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      {children(picked, pick)}
      <Button type="submit" disabled={picked === ''} loading={add.isBusy}>
        Add
      </Button>
    </Group>
  );
}
