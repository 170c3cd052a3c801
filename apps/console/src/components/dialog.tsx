import type { FormEvent, ReactNode } from 'react';
import { Button, Group, Modal } from '@mantine/core';

interface Props {
  opened: boolean;
  title: ReactNode;
  /** What the button says: the action by its name, not "OK". */
  action: string;
  /** The label of the button that closes the dialog. Default: Cancel. */
  dismiss?: string | undefined;
  isDangerous?: boolean | undefined;
  /** What has to be filled in is not. */
  isIncomplete?: boolean;
  isBusy?: boolean;
  onSubmit: () => void;
  onClose: () => void;
  children: ReactNode;
}

/** A dialog with one action. The focus starts on the button that dismisses it, unless a child has `data-autofocus`. */
export function Dialog(props: Props) {
  const {
    opened,
    title,
    action,
    dismiss = 'Cancel',
    isDangerous,
    isIncomplete = false,
    isBusy = false,
    onSubmit,
    onClose,
    children,
  } = props;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    // A dialog stands in its page's tree, maybe within another form.
    event.stopPropagation();
    if (!isIncomplete && !isBusy) onSubmit();
  };
  return (
    <Modal opened={opened} onClose={onClose} title={title}>
      <form onSubmit={submit}>
        {children}
        <Group justify="flex-end" mt="lg">
          <Button variant="default" onClick={onClose} data-autofocus>
            {dismiss}
          </Button>
          <Button type="submit" color={isDangerous ? 'red' : 'indigo'} disabled={isIncomplete} loading={isBusy}>
            {action}
          </Button>
        </Group>
      </form>
    </Modal>
  );
}
