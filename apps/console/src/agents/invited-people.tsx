import { useState, type FormEvent } from 'react';
import { Button, Group, SegmentedControl, Table, Text } from '@mantine/core';
import type { ManagedAgent } from '#contract';
import { post, remove } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { useAction } from '../components/action.ts';
import { ActionButton } from '../components/action-button.tsx';
import { Section } from '../components/section.tsx';
import { PersonLink } from '../components/record-link.tsx';
import { ShortId } from '../components/short-id.tsx';
import { PersonPicker } from '../components/pickers.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';

const ACCESS = [
  { value: 'organization', label: 'Every member' },
  { value: 'invited', label: 'Invited people only' },
] satisfies { value: ManagedAgent['access']; label: string }[];

/** The people who may use the Agent. */
export function InvitedPeople({ agent }: { agent: ManagedAgent }) {
  const isDeleted = agent.deletedAt !== null;
  const params = { agentId: agent.id };
  const other = agent.access === 'invited' ? 'organization' : 'invited';
  const change = useAction(() => post('/agents/{agentId}', { params, body: { access: other } }), {
    done: 'Access is changed.',
    ask:
      other === 'invited'
        ? {
            title: `Let only invited people use ${agent.name}?`,
            message: `Its owner and the people listed here can use it. Other members of ${agent.organizationName} lose access within 5 s.`,
            action: 'Restrict access',
            isDangerous: true,
          }
        : {
            title: `Let every member use ${agent.name}?`,
            message: `All members of ${agent.organizationName} will be able to use it.`,
            action: 'Allow all members',
          },
  });
  return (
    <Section
      title="People"
      actions={
        <SegmentedControl
          size="xs"
          data={ACCESS}
          value={agent.access}
          disabled={isDeleted || change.isBusy}
          onChange={() => void change.act()}
          aria-label={`Who may use ${agent.name}`}
        />
      }
    >
      <Text size="sm" mb="sm">
        {agent.access === 'organization'
          ? `Every member of ${agent.organizationName} may use it. Invitations take effect when only invited people may use it.`
          : `Its owner and these members of ${agent.organizationName} may use it.`}
      </Text>
      {agent.ownerPersonId !== null && <Owner personId={agent.ownerPersonId} />}
      {agent.invitedPersonIds.length > 0 && (
        <RecordTable
          aria-label={`People invited to ${agent.name}`}
          minWidth={300}
          columns={['Person', { name: 'Actions', ta: 'right' }]}
        >
          {agent.invitedPersonIds.map((personId) => (
            <InvitedPerson key={personId} agent={agent} personId={personId} />
          ))}
        </RecordTable>
      )}
      {!isDeleted && <Invite agent={agent} />}
    </Section>
  );
}

function usePersonName(personId: string): string | undefined {
  return useOperation('/people/{personId}', { params: { personId } }).data?.person.name;
}

function Owner({ personId }: { personId: string }) {
  const name = usePersonName(personId);
  return (
    <Text size="sm" mb="sm">
      Owner: <PersonLink id={personId} name={name ?? personId} /> <ShortId id={personId} of="person" />
    </Text>
  );
}

function InvitedPerson({ agent, personId }: { agent: ManagedAgent; personId: string }) {
  const name = usePersonName(personId) ?? personId;
  const uninvite = useAction(
    () => remove('/agents/{agentId}/people/{personId}', { params: { agentId: agent.id, personId } }),
    {
      done: `The invitation of ${name} is removed.`,
      ask: {
        title: `Remove the invitation of ${name}?`,
        message: `If only invited people may use ${agent.name}, they lose access within 5 s.`,
        action: 'Remove',
        isDangerous: true,
      },
    },
  );
  return (
    <RecordRow>
      <Table.Td>
        <Group gap="xs">
          <PersonLink id={personId} name={name} />
          <ShortId id={personId} of="person" />
        </Group>
      </Table.Td>
      <Table.Td ta="right">
        {agent.deletedAt === null && (
          <ActionButton action={uninvite} label="Remove" target={`the invitation of ${name}`} />
        )}
      </Table.Td>
    </RecordRow>
  );
}

function Invite({ agent }: { agent: ManagedAgent }) {
  const [personId, setPersonId] = useState('');
  const invite = useAction(
    () => post('/agents/{agentId}/people', { params: { agentId: agent.id }, body: { personId } }),
    { done: 'Invited.' },
  );
  const submit = async () => {
    if ((await invite.act()) !== undefined) setPersonId('');
  };
  return (
    <Group
      component="form"
      align="flex-end"
      gap="sm"
      aria-label={`Invite a person to ${agent.name}`}
      onSubmit={(event: FormEvent) => {
        event.preventDefault();
        void submit();
      }}
    >
      <PersonPicker
        label="Person"
        placeholder="By name"
        organizationId={agent.organizationId}
        value={personId}
        onChange={setPersonId}
      />
      <Button type="submit" disabled={personId === ''} loading={invite.isBusy}>
        Invite
      </Button>
    </Group>
  );
}
