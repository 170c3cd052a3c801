import { useState } from 'react';
import { Button, SegmentedControl, Select, Stack, Switch, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { post } from '../api/client.ts';
import { Dialog } from '../components/dialog.tsx';
import { ErrorNote } from '../components/query-state.tsx';
import { AgentsPicker, OrganizationPicker, PersonPicker } from '../components/pickers.tsx';
import { optionsOf } from '../components/status-table.ts';
import { LimitFields } from './limit-fields.tsx';
import { EMPTY_FORM, newTokenOf, type TokenForm } from './new-token.ts';
import { SecretDialog, useSecret } from './secret-dialog.tsx';
import { LIFETIMES, TOKEN_KINDS } from './token-look.ts';

const WHAT_FOR: Record<TokenForm['kind'], string> = {
  person: 'Calls the Agents that this person may use, and sees this person’s Threads.',
  service: 'An application: calls the Agents chosen here.',
  operator: 'Can do everything that this console and the spool command can, including creating tokens.',
};

/** The button, the form and the secret that comes of it. */
export function MintToken() {
  const [isOpen, setOpen] = useState(false);
  const [form, setForm] = useState(EMPTY_FORM);
  const secret = useSecret(() => post('/tokens', { body: newTokenOf(form, Date.now())! }));
  const close = () => {
    setOpen(false);
    setForm(EMPTY_FORM);
    secret.forget();
  };
  return (
    <>
      <Button leftSection={<IconPlus size={14} />} onClick={() => setOpen(true)}>
        Create token
      </Button>
      <Dialog
        opened={isOpen && secret.minted === null}
        title="Create token"
        action="Create"
        isIncomplete={newTokenOf(form, 0) === null}
        isBusy={secret.isBusy}
        onSubmit={() => void secret.ask()}
        onClose={close}
      >
        <Stack gap="sm">
          {secret.error && <ErrorNote error={secret.error} />}
          <Fields form={form} change={(changed) => setForm((before) => ({ ...before, ...changed }))} />
        </Stack>
      </Dialog>
      <SecretDialog minted={secret.minted} onClose={close} />
    </>
  );
}

function Fields({ form, change }: { form: TokenForm; change: (changed: Partial<TokenForm>) => void }) {
  return (
    <>
      <SegmentedControl
        fullWidth
        data={optionsOf(TOKEN_KINDS)}
        value={form.kind}
        onChange={(kind) => change({ kind: kind as TokenForm['kind'] })}
        aria-label="Kind of token"
      />
      <Text size="sm" c="dimmed">
        {WHAT_FOR[form.kind]}
      </Text>
      <TextInput
        label="Name"
        description="Such as what the token is used for."
        required
        maxLength={255}
        autoComplete="off"
        value={form.name}
        onChange={(event) => change({ name: event.currentTarget.value })}
        data-autofocus
      />
      {form.kind === 'person' && (
        <PersonPicker label="Person" required value={form.personId} onChange={(personId) => change({ personId })} />
      )}
      {form.kind === 'service' && (
        <>
          <OrganizationPicker
            label="Organization"
            required
            value={form.organizationId}
            onChange={(organizationId) => change({ organizationId, agentIds: [] })}
          />
          <AgentsPicker
            organizationId={form.organizationId}
            value={form.agentIds}
            onChange={(agentIds) => change({ agentIds })}
          />
          <Switch
            label="May create Threads on behalf of people"
            checked={form.allowAttribution}
            onChange={(event) => change({ allowAttribution: event.currentTarget.checked })}
          />
        </>
      )}
      <Select
        label="Expires in"
        data={LIFETIMES.map(({ label }) => label)}
        allowDeselect={false}
        value={LIFETIMES.find(({ days }) => days === form.days)!.label}
        onChange={(picked) => change({ days: LIFETIMES.find(({ label }) => label === picked)!.days })}
      />
      <LimitFields kind={form.kind} form={form} change={change} />
    </>
  );
}
