import { useState } from 'react';
import { Button, Modal, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { IconDownload, IconFile } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import type { MessagePart } from '#client';
import { useSpool } from '#client/react';
import { reportFailure } from '../components/action.ts';
import { shortenId } from '../components/format.ts';
import { ErrorNote, Loading } from '../components/query-state.tsx';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';
import { Markdown } from './markdown.tsx';

type FilePart = Extract<MessagePart, { type: 'file' }>;

/** Names of files that the browser can show as an image. */
const IMAGE = /\.(?:png|jpe?g|gif|webp|avif)$/i;
const TEXT = /\.(?:txt|md|csv|tsv|json|ya?ml|xml|html?|css|log|sql|sh|py|js|mjs|ts|tsx|jsx)$/i;
/** Larger text files are not shown, only downloaded. Bytes. */
const MAX_SHOWN = 1_000_000;

const ACTIONS: Record<string, string> = { deleted: 'Deleted', detached: 'Removed' };

/** A file of a message. Text files and images open in a dialog; other files are downloaded. Images have a preview in answers. */
export function FileChip({ part, hasPreview = false }: { part: FilePart; hasPreview?: boolean }) {
  const { fileId, action } = part;
  const name = withoutDirections(part.name ?? shortenId(fileId));
  const [opened, { open, close }] = useDisclosure(false);
  const { files } = useSpool();
  const save = (): void => {
    files.link(fileId).then(({ url }) => download(samePlace(url), name), reportFailure);
  };
  if (action !== null && action in ACTIONS) {
    return (
      <Text size="xs" c="dimmed" className={classes.breakable}>
        {ACTIONS[action]}: {name}
      </Text>
    );
  }
  const canOpen = IMAGE.test(name) || TEXT.test(name);
  return (
    <div className={classes.file} data-part="file">
      {hasPreview && IMAGE.test(name) && (
        // The button below does the same for the keyboard and screen readers.
        <button type="button" className={classes.thumbnail} onClick={open} tabIndex={-1} aria-hidden>
          <Picture fileId={fileId} name={name} />
        </button>
      )}
      <Button.Group>
        <Button
          variant="default"
          leftSection={<IconFile size={14} />}
          onClick={canOpen ? open : save}
          aria-label={canOpen ? `Open ${name}` : `Download ${name}`}
          className={classes.fileName}
          title={name}
        >
          <Text span inherit truncate>
            {name}
          </Text>
        </Button>
        <Button variant="default" px="xs" onClick={save} aria-label={`Download ${name}`} title="Download">
          <IconDownload size={14} />
        </Button>
      </Button.Group>
      <Modal opened={opened} onClose={close} title={name} size="xl">
        {opened &&
          (IMAGE.test(name) ? <Picture fileId={fileId} name={name} /> : <FileText fileId={fileId} name={name} />)}
      </Modal>
    </div>
  );
}

/** Downloads from the address, even if the browser could show the file. */
function download(address: string, name: string): void {
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
}

/** Returns the link on the page's own origin. Links use PUBLIC_BASE_URL, but the page's policy allows images only of its own origin. */
const samePlace = (url: string): string => {
  const { pathname, search } = new URL(url);
  return `${pathname}${search}`;
};

/** How long a link is reused. The service accepts it for five minutes. Milliseconds. */
const LINK_AGE_MS = 4 * 60_000;

function Picture({ fileId, name }: { fileId: string; name: string }) {
  const { files } = useSpool();
  const [broken, setBroken] = useState<string | null>(null);
  const { data, error } = useQuery({
    queryKey: ['file link', fileId],
    queryFn: () => files.link(fileId),
    staleTime: LINK_AGE_MS,
  });
  if (error) return <ErrorNote error={error} />;
  if (data === undefined) return <Loading />;
  if (broken === data.url) return <Text size="xs">{name} cannot be shown.</Text>;
  return <img src={samePlace(data.url)} alt={name} className={classes.picture} onError={() => setBroken(data.url)} />;
}

function FileText({ fileId, name }: { fileId: string; name: string }) {
  const { files } = useSpool();
  const { data, error } = useQuery({
    queryKey: ['file text', fileId],
    queryFn: async () => {
      const response = await files.download(fileId);
      if (Number(response.headers.get('content-length')) > MAX_SHOWN) {
        await response.body?.cancel();
        throw new Error('The file is larger than 1 MB, so it is not shown. Download it.');
      }
      return response.text();
    },
    // The Agent can change the file.
    staleTime: 0,
  });
  if (error) return <ErrorNote error={error} />;
  if (data === undefined) return <Loading />;
  if (/\.md$/i.test(name)) return <Markdown text={data} isStreaming={false} />;
  return (
    <pre className={classes.fileText} tabIndex={0} aria-label={name}>
      {withoutDirections(data)}
    </pre>
  );
}
