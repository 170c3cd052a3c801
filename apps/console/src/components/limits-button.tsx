import { useState, type ReactNode } from 'react';
import { Button, Stack, Text } from '@mantine/core';
import { useAction } from './action.ts';
import { Dialog } from './dialog.tsx';

interface Props<Form> {
  /** The noun for the owner of the limits, such as `token`. */
  of: string;
  name: string;
  /** The limits as they are. */
  limits: Form;
  hint: string;
  save: (form: Form) => Promise<unknown>;
  /** The fields of the form. */
  children: (form: Form, change: (changed: Partial<Form>) => void) => ReactNode;
}

/** A button, and the dialog in which it sets limits. */
export function LimitsButton<Form extends object>({ of, name, limits, hint, save, children }: Props<Form>) {
  const [form, setForm] = useState<Form | null>(null);
  const saving = useAction(
    async () => {
      if (form !== null) await save(form);
      return true;
    },
    { done: `${name} has new limits.` },
  );
  const close = () => setForm(null);
  const submit = async () => {
    if ((await saving.act()) !== undefined) close();
  };
  return (
    <>
      <Button variant="default" onClick={() => setForm(limits)} aria-label={`Limits of ${of} ${name}`}>
        Limits
      </Button>
      <Dialog
        opened={form !== null}
        title={`Limits of ${name}`}
        action="Save"
        isBusy={saving.isBusy}
        onSubmit={() => void submit()}
        onClose={close}
      >
        {form !== null && (
          <Stack gap="sm">
            <Text size="sm">{hint}</Text>
            {children(form, (changed) => setForm({ ...form, ...changed }))}
          </Stack>
        )}
      </Dialog>
    </>
  );
}
