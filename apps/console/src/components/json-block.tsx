import { useState } from 'react';
import { Button, Code } from '@mantine/core';
import { formatCount } from './format.ts';
import classes from './parts.module.css';

/** Characters that are shown at first: to lay out megabytes takes seconds, and most look for what comes first. */
const SHOWN = 50_000;

/** A value as JSON, in a box of its own that can be scrolled, also by keyboard. `label` names it. */
export function JsonBlock({ value, label, maxHeight = 240 }: { value: unknown; label: string; maxHeight?: number }) {
  const [isWhole, setWhole] = useState(false);
  const text = JSON.stringify(value, null, 2);
  const isCut = !isWhole && text.length > SHOWN;
  return (
    <>
      <Code block mah={maxHeight} tabIndex={0} role="group" aria-label={label} className={classes.json}>
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
