import { useState } from 'react';
import classes from './chat.module.css';
import { withoutDirections } from './markdown-rules.ts';

/** The model's thinking. It is open while it streams in, unless the user has closed it. */
export function ThinkingPart({ text, isStreaming }: { text: string; isStreaming: boolean }) {
  const [chosen, setChosen] = useState<boolean | null>(null);
  const isOpen = chosen ?? isStreaming;
  return (
    <details className={classes.thinking} open={isOpen} data-part="thinking">
      <summary
        onClick={(event) => {
          // React sets `open`, because the browser would also report its own changes.
          event.preventDefault();
          setChosen(!isOpen);
        }}
      >
        {isStreaming ? 'Thinking…' : 'Thoughts'}
      </summary>
      {isOpen && <p>{withoutDirections(text)}</p>}
    </details>
  );
}
