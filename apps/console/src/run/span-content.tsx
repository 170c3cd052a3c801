import { memo, type ReactNode } from 'react';
import { Code, Stack, Text } from '@mantine/core';
import type { TimelineSpan } from '#contract';
import { JsonBlock } from '../components/json-block.tsx';
import { TextBlock } from '../components/text-block.tsx';
import type { RunEvent } from './use-run-events.ts';

/** The data of the stored events with content. Every later release can read their shapes (docs/adr/0001). */
interface Content {
  text?: string;
  thinking?: string;
  toolCalls?: { toolCallId: string; toolName: string; toolInput: unknown; invalidInput?: string }[];
  toolInput?: unknown;
  invalidInput?: string;
  result?: string;
}

interface Props {
  span: TimelineSpan;
  events: ReadonlyMap<number, RunEvent>;
}

/** Shows the text of a model step, or the input and result of a tool. Renders again only if its props change. */
export const SpanContent = memo(function SpanContent({ span, events }: Props) {
  const { kind, name, inputVersion = null, outputVersion = null } = span;
  const versions = [inputVersion, outputVersion].filter((version) => version !== null);
  if (versions.some((version) => !events.has(version))) {
    return (
      <Text size="sm" c="dimmed">
        Not loaded yet.
      </Text>
    );
  }
  const of = (version: number | null) => (version === null ? {} : (events.get(version)!.data as Content));
  return (
    <Stack gap="xs">
      {kind === 'tool' ? (
        <ToolContent span={span} input={of(inputVersion)} output={of(outputVersion)} />
      ) : (
        <ModelContent name={name} {...of(outputVersion)} />
      )}
    </Stack>
  );
});

function ToolContent({ span, input, output }: { span: TimelineSpan; input: Content; output: Content }) {
  const { name, toolCallId, inputVersion } = span;
  const call = input.toolCalls?.find((each) => each.toolCallId === toolCallId) ?? input;
  return (
    <>
      <Named name="Input">
        {inputVersion === null || inputVersion === undefined ? (
          <Text size="sm">The previous Run has the call and its input.</Text>
        ) : call.invalidInput === undefined ? (
          <JsonBlock value={call.toolInput} label={`Input of ${name}`} />
        ) : (
          <TextBlock text={call.invalidInput} label={`Invalid input of ${name}`} />
        )}
      </Named>
      {output.result !== undefined && (
        <Named name="Result">
          <TextBlock text={output.result} label={`Result of ${name}`} />
        </Named>
      )}
    </>
  );
}

function ModelContent({ name, text = '', thinking = '', toolCalls = [] }: Content & { name: string }) {
  return (
    <>
      {thinking !== '' && (
        <Named name="Thinking">
          <TextBlock text={thinking} label={`Thinking of ${name}`} />
        </Named>
      )}
      {text !== '' && (
        <Named name="Text">
          <TextBlock text={text} label={`Text of ${name}`} />
        </Named>
      )}
      {toolCalls.length > 0 && (
        <Text size="sm">
          Calls{' '}
          {toolCalls.map(({ toolCallId, toolName }, i) => (
            <span key={toolCallId}>
              {i > 0 && ', '}
              <Code>{toolName}</Code>
            </span>
          ))}
        </Text>
      )}
      {text === '' && thinking === '' && toolCalls.length === 0 && <Text size="sm">The model wrote nothing.</Text>}
    </>
  );
}

function Named({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div>
      <Text size="xs" fw={600} c="dimmed">
        {name}
      </Text>
      {children}
    </div>
  );
}
