import { useState } from 'react';
import { Button, Text, TextInput } from '@mantine/core';
import { IconTrash } from '@tabler/icons-react';
import type { Action } from './action.ts';
import { Dialog } from './dialog.tsx';

interface Props {
  /** Such as `Thread 01J…`. */
  target: string;
  title: string;
  message: string;
  /** What has to be typed, in upper or lower case, and how that is asked for. */
  wanted: string;
  label: string;
  /** Leads away from what it has deleted. */
  deletion: Action;
}

/** Deleting loses what nothing brings back: it is asked to type of what. */
export function TypedDeletion({ target, title, message, wanted, label, deletion }: Props) {
  const [opened, setOpened] = useState(false);
  const [typed, setTyped] = useState('');
  const close = () => {
    setOpened(false);
    setTyped('');
  };
  const submit = async () => {
    if ((await deletion.act()) !== undefined) close();
  };
  return (
    <>
      <Button
        color="red"
        variant="outline"
        leftSection={<IconTrash size={14} />}
        aria-label={`Delete ${target}`}
        onClick={() => setOpened(true)}
      >
        Delete
      </Button>
      <Dialog
        {...{ opened, title }}
        action="Delete permanently"
        isDangerous
        isIncomplete={typed.trim().toLowerCase() !== wanted.toLowerCase()}
        isBusy={deletion.isBusy}
        onSubmit={() => void submit()}
        onClose={close}
      >
        <Text size="sm" mb="sm">
          {message} This cannot be undone.
        </Text>
        <TextInput
          label={label}
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
          autoComplete="off"
          data-autofocus
        />
      </Dialog>
    </>
  );
}
