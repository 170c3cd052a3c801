import type { ComponentType } from 'react';
import { Button, type ButtonProps } from '@mantine/core';
import type { Action } from './action.ts';

interface Props extends Pick<ButtonProps, 'color' | 'variant' | 'size' | 'disabled'> {
  action: Action;
  label: string;
  /** What it is done to, such as `Run 01J…`: the button's name for those who do not see where it stands. */
  target: string;
  icon?: ComponentType<{ size?: number }>;
}

/** A button named by its action and target. */
export function ActionButton({ action, label, target, icon: Icon, ...look }: Props) {
  return (
    <Button
      variant="default"
      {...look}
      loading={action.isBusy}
      onClick={() => void action.act()}
      aria-label={`${label} ${target}`}
      leftSection={Icon && <Icon size={14} />}
    >
      {label}
    </Button>
  );
}
