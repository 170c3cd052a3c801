import { useEffect } from 'react';
import { useClipboard } from '@mantine/hooks';
import { reportFailure } from './action.ts';

const SHOWN_MS = 1_000;

/** Copies a text, `copied` for a moment, or says that it could not: over plain http, browsers let no page copy. */
export function useCopy(text: string): { copied: boolean; copy: () => void } {
  const { copied, copy, error } = useClipboard({ timeout: SHOWN_MS });
  useEffect(() => {
    if (error !== null) {
      reportFailure(new Error('This browser allows copying only over HTTPS. Select the text and copy it by hand.'));
    }
  }, [error]);
  return { copied, copy: () => copy(text) };
}
