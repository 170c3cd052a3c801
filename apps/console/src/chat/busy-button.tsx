import { useState } from 'react';
import { Button, type ButtonProps } from '@mantine/core';
import { reportFailure } from '../components/action.ts';

interface Props extends ButtonProps {
  act: () => Promise<unknown>;
  'aria-label'?: string;
  'aria-describedby'?: string;
}

/** A button that is busy until its action has ended. A failure is shown. */
export function BusyButton({ act, ...look }: Props) {
  const [isBusy, setBusy] = useState(false);
  const click = (): void => {
    setBusy(true);
    act()
      .catch(reportFailure)
      .finally(() => setBusy(false));
  };
  return <Button {...look} loading={isBusy} onClick={click} />;
}
