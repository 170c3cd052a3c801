import { useState } from 'react';
import { Button, Code } from '@mantine/core';
import { formatCount } from './format.ts';
import classes from './parts.module.css';

/** The number of characters that are shown at first. The layout of megabytes takes seconds. */
const SHOWN = 50_000;

/** Text with its line breaks, in a box that also scrolls by keyboard. `label` names it. `maxHeight` is in px. */
export function TextBlock({
  text,
  label,
  maxHeight = 240,
}: {
  text: string;
  label: string;
  maxHeight?: number | undefined;
}) {
  const [isWhole, setWhole] = useState(false);
  const isCut = !isWhole && text.length > SHOWN;
  return (
    <>
      <Code block mah={maxHeight} tabIndex={0} role="group" aria-label={label} className={classes.text}>
        {isCut ? `${text.slice(0, SHOWN)}…` : text}
      </Code>
      {isCut && (
        <Button variant="subtle" onClick={() => setWhole(true)}>
          Show all {formatCount(text.length)} characters
        </Button>
      )}
    </>
  );
}
