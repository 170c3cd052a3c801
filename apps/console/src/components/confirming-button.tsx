import { useEffect, useState, type ComponentProps } from 'react';
import { ActionButton } from './action-button.tsx';

const ARMED_MS = 5_000;
/** The second click of a double-click comes sooner. Milliseconds. */
const PAUSE_MS = 500;

interface Props extends ComponentProps<typeof ActionButton> {
  needsSecondClick: boolean;
}

/** A button whose action can need a second click, from half a second to five seconds after the first. Then its label says so. */
export function ConfirmingButton({ needsSecondClick, action, label, color, ...button }: Props) {
  const [armedAt, setArmedAt] = useState<number | null>(null);
  useEffect(() => {
    if (armedAt === null) return undefined;
    const timer = setTimeout(setArmedAt, ARMED_MS, null);
    return () => clearTimeout(timer);
  }, [armedAt]);
  const act = async (): Promise<unknown> => {
    const now = Date.now();
    if (needsSecondClick && armedAt === null) return setArmedAt(now);
    if (needsSecondClick && now - armedAt! < PAUSE_MS) return undefined;
    setArmedAt(null);
    return action.act();
  };
  return (
    <ActionButton
      {...button}
      {...(armedAt !== null ? { color: 'red' } : color === undefined ? {} : { color })}
      action={{ ...action, act }}
      label={armedAt === null ? label : `Click again: ${label}`}
    />
  );
}
