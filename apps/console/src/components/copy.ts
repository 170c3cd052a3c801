import { useEffect } from 'react';
import { useClipboard } from '@mantine/hooks';
import { reportFailure } from './action.ts';

const SHOWN_MS = 1_000;

const NOT_ALLOWED = 'This browser allows copying only over HTTPS. Select the text and copy it by hand.';

/** Copies a text. Throws an error for people if the browser does not allow it. */
export async function copyText(text: string): Promise<void> {
  // Undefined over plain HTTP.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  if (clipboard === undefined) throw new Error(NOT_ALLOWED);
  await clipboard.writeText(text);
}

/** Copies a text when `copy` is called. `copied` is true for a moment afterwards. Shows a failure to the person. */
export function useCopy(text: string): { copied: boolean; copy: () => void } {
  const { copied, copy, error } = useClipboard({ timeout: SHOWN_MS });
  useEffect(() => {
    if (error !== null) reportFailure(new Error(NOT_ALLOWED));
  }, [error]);
  return { copied, copy: () => copy(text) };
}
