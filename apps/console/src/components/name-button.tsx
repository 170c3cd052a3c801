import { useState } from 'react';
import { Button, TextInput } from '@mantine/core';
import { useAction } from './action.ts';
import { Dialog } from './dialog.tsx';

interface Props {
  /** The text of the button, such as `Rename`. */
  label: string;
  /** The title of the dialog, such as `Rename organization Acme`. */
  title: string;
  /** The initial text of the field. */
  name?: string;
  /** The message after success. */
  done: (name: string) => string;
  save: (name: string) => Promise<unknown>;
}

/** A button that opens a dialog for a name. */
export function NameButton({ label, title, name = '', done, save }: Props) {
  const [typed, setTyped] = useState<string | null>(null);
  const wanted = typed?.trim() ?? '';
  const saving = useAction(async () => (await save(wanted), true), { done: () => done(wanted) });
  const close = () => setTyped(null);
  const submit = async () => {
    if ((await saving.act()) !== undefined) close();
  };
  return (
    <>
      <Button variant="default" onClick={() => setTyped(name)} aria-label={title}>
        {label}
      </Button>
      <Dialog
        opened={typed !== null}
        title={title}
        action={label}
        isIncomplete={wanted === '' || wanted === name}
        isBusy={saving.isBusy}
        onSubmit={() => void submit()}
        onClose={close}
      >
        <TextInput
          label="Name"
          data-autofocus
          required
          maxLength={255}
          value={typed ?? ''}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
      </Dialog>
    </>
  );
}
