import { useState, type ReactNode } from 'react';
import { Anchor, type AnchorProps } from '@mantine/core';
import { download } from '../api/client.ts';
import { reportFailure } from '../components/action.ts';

interface Props extends AnchorProps {
  file: { id: string; name: string };
  children: ReactNode;
}

/** A button that saves a file of a Thread. With a link, the browser would not send the page key. */
export function DownloadLink({ file: { id, name }, children, ...look }: Props) {
  const [isBusy, setBusy] = useState(false);
  const save = (): void => {
    setBusy(true);
    download('/files/{fileId}/content', { params: { fileId: id } })
      .then((bytes) => saveAs(bytes, name))
      .catch(reportFailure)
      .finally(() => setBusy(false));
  };
  return (
    <Anchor component="button" type="button" onClick={save} disabled={isBusy} aria-busy={isBusy} {...look}>
      {children}
    </Anchor>
  );
}

function saveAs(bytes: Blob, name: string): void {
  const href = URL.createObjectURL(bytes);
  Object.assign(document.createElement('a'), { href, download: name }).click();
  // Frees the bytes. The browser has begun to read them once the click was handled.
  setTimeout(() => URL.revokeObjectURL(href), 60_000);
}
