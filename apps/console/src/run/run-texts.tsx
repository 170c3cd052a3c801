import { SimpleGrid, Text } from '@mantine/core';
import type { RunTimeline } from '#contract';
import { formatCount } from '../components/format.ts';
import { Section } from '../components/section.tsx';
import { TextBlock } from '../components/text-block.tsx';

interface TextsProps {
  timeline: RunTimeline;
  isLive: boolean;
}

/** Shows the message that a Run answers, and its final text. Shows nothing if an older service does not send them. */
export function RunTexts({ timeline: { input, output }, isLive }: TextsProps) {
  if (input === undefined) return null;
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
      <RunText title="Input" content={input} missing="This Run has no message." />
      <RunText title="Output" content={output} missing={isLive ? 'The Run has not ended.' : 'No final text.'} />
    </SimpleGrid>
  );
}

interface Props {
  title: string;
  content: RunTimeline['input'];
  missing: string;
}

function RunText({ title, content, missing }: Props) {
  return (
    <Section title={title}>
      {content ? (
        <TextBlock text={content.text} label={`${title} of the Run`} />
      ) : (
        <Text size="sm" c="dimmed">
          {missing}
        </Text>
      )}
      {content && content.length > [...content.text].length && (
        <Text size="xs" c="dimmed" mt={4}>
          The first {formatCount([...content.text].length)} of {formatCount(content.length)} characters. The stored
          events of the Thread have the whole text.
        </Text>
      )}
    </Section>
  );
}
