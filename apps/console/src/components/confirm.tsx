import { createContext, use, useCallback, useEffect, useState, type ReactNode } from 'react';
import { Text } from '@mantine/core';
import { Dialog } from './dialog.tsx';

export interface Question {
  title: string;
  /** What happens then, and what cannot be undone. */
  message: ReactNode;
  /** What the button says: the action by its name, not "OK". */
  action: string;
  /** The label of the button that changes nothing. Default: Cancel. */
  dismiss?: string;
  isDangerous?: boolean;
}

type Ask = (question: Question) => Promise<boolean>;

const AskContext = createContext<Ask>(() => Promise.resolve(false));

/** Asks the person; true if they agree. */
export const useConfirm = (): Ask => use(AskContext);

/** The one dialog that asks before something ends, is removed or concerns all. */
export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [asked, setAsked] = useState<{ question: Question; settle: (agreed: boolean) => void }>();
  const [opened, setOpened] = useState(false);
  const ask = useCallback<Ask>(
    (question) =>
      new Promise((resolve) => {
        setAsked({ question, settle: resolve });
        setOpened(true);
      }),
    [],
  );
  const settle = (agreed: boolean) => {
    setOpened(false);
    asked?.settle(agreed);
  };
  useEffect(() => {
    // What was asked of a page that one has gone back from is no longer asked.
    const onBack = () => {
      setOpened(false);
      asked?.settle(false);
    };
    window.addEventListener('popstate', onBack);
    return () => window.removeEventListener('popstate', onBack);
  }, [asked]);
  return (
    <AskContext value={ask}>
      {children}
      <Dialog
        opened={opened}
        title={asked?.question.title}
        action={asked?.question.action ?? ''}
        dismiss={asked?.question.dismiss}
        isDangerous={asked?.question.isDangerous}
        onSubmit={() => settle(true)}
        onClose={() => settle(false)}
      >
        <Text component="div" size="sm">
          {asked?.question.message}
        </Text>
      </Dialog>
    </AskContext>
  );
}
