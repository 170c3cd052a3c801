import { ActionIcon, Anchor, Code, Group } from '@mantine/core';
import { IconCheck, IconCopy } from '@tabler/icons-react';
import { Link } from 'wouter';
import { useCopy } from './copy.ts';
import { shortenId } from './format.ts';
import classes from './parts.module.css';

interface Props {
  id: string;
  /** What it is the id of: `Run`, `Thread`. Names the link and the button. */
  of: string;
  /** The page of it, such as `/runs/01J…`. */
  to?: string;
}

/** An id shortened in the middle, whole as title, with a button that copies it. */
export function ShortId({ id, of, to }: Props) {
  const { copied, copy } = useCopy(id);
  const text = (
    <Code title={id} className={classes.id}>
      {shortenId(id)}
    </Code>
  );
  return (
    <Group component="span" gap={2} wrap="nowrap" display="inline-flex">
      {to === undefined ? (
        text
      ) : (
        <Anchor component={Link} href={to} aria-label={`${of} ${shortenId(id)}, ${id}`}>
          {text}
        </Anchor>
      )}
      <ActionIcon size="xs" onClick={copy} aria-label={`Copy the id of ${of} ${id}`} title="Copy the id">
        {copied ? <IconCheck size={12} /> : <IconCopy size={12} />}
      </ActionIcon>
    </Group>
  );
}
