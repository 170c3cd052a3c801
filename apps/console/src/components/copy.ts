import { useEffect } from 'react';
import { useClipboard } from '@mantine/hooks';
import { reportFailure } from './action.ts';

const SHOWN_MS = 1_000;

const NOT_ALLOWED = 'This browser allows copying only over HTTPS. Select the text and copy it by hand.';

const INTERRUPTED = 'The browser did not allow the copy. Keep this page in front until the copy is done.';

/**
 * Copies a text that is still being read. Call it directly in a click handler: browsers allow a copy only there.
 * Throws the error of `text`. If the browser does not allow the copy, throws an error whose message is for people.
 */
export async function copyLater(text: Promise<string>): Promise<void> {
  // Browsers have no clipboard over plain HTTP.
  const clipboard = navigator.clipboard as Clipboard | undefined;
  const blob = text.then((read) => new Blob([read], { type: 'text/plain' }));
  const written = clipboard?.write([new ClipboardItem({ 'text/plain': blob })]);
  // Prevents an unhandled rejection while the text is read. The error is handled below.
  written?.catch(() => undefined);
  await blob;
  if (written === undefined) throw new Error(NOT_ALLOWED);
  await written.catch(() => {
    throw new Error(INTERRUPTED);
  });
}

/** Returns `copy`, which copies the text and shows a failure. `copied` is true for a second afterwards. */
export function useCopy(text: string): { copied: boolean; copy: () => void } {
  const { copied, copy, error } = useClipboard({ timeout: SHOWN_MS });
  useEffect(() => {
    if (error !== null) reportFailure(new Error(NOT_ALLOWED));
  }, [error]);
  return { copied, copy: () => copy(text) };
}
