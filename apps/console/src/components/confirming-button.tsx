import { useEffect, useState, type ComponentProps } from 'react';
import { ActionButton } from './action-button.tsx';

const ARMED_MS = 5_000;

interface Props extends ComponentProps<typeof ActionButton> {
  needsSecondClick: boolean;
}

/** A button whose action can need a second click within five seconds. After the first one, it says so. */
export function ConfirmingButton({ needsSecondClick, action, label, color, ...button }: Props) {
  const [isArmed, setArmed] = useState(false);
  useEffect(() => {
    if (!isArmed) return undefined;
    const timer = setTimeout(setArmed, ARMED_MS, false);
    return () => clearTimeout(timer);
  }, [isArmed]);
  const act = async (): Promise<unknown> => {
    if (needsSecondClick && !isArmed) return setArmed(true);
    setArmed(false);
    return action.act();
  };
  return (
    <ActionButton
      {...button}
      {...(isArmed ? { color: 'red' } : color === undefined ? {} : { color })}
      action={{ ...action, act }}
      label={isArmed ? `Click again: ${label}` : label}
    />
  );
}
