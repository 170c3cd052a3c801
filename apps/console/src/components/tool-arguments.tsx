import { Button, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { JsonBlock } from './json-block.tsx';
import classes from './tool-arguments.module.css';

/** Longer input is folded: the first lines tell most. */
const SHOWN = 5;
const SHOWN_CHARACTERS = 160;

/** The input of a tool call as names and values. `of`: the call, for people who hear the page. */
export function ToolArguments({ input, of }: { input: Record<string, unknown>; of: string }) {
  const [isOpen, { toggle }] = useDisclosure(false);
  const all = Object.entries(input).map(([name, value]) => [name, textOf(value)] as const);
  if (all.length === 0) return <Text size="sm">–</Text>;
  const isCut = all.length > SHOWN || all.some(([, text]) => text.length > SHOWN_CHARACTERS);
  return (
    <>
      {isOpen ? (
        <JsonBlock value={input} label={`Input of ${of}`} maxHeight={320} />
      ) : (
        <dl className={classes.arguments}>
          {all.slice(0, SHOWN).map(([name, text]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text}</dd>
            </div>
          ))}
        </dl>
      )}
      {isCut && (
        <Button
          variant="default"
          size="compact-xs"
          onClick={toggle}
          aria-expanded={isOpen}
          aria-label={`${isOpen ? 'Hide' : 'Show'} the whole input of ${of}`}
        >
          {isOpen ? 'Less' : 'Show all'}
        </Button>
      )}
    </>
  );
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : (JSON.stringify(value) ?? ''));
