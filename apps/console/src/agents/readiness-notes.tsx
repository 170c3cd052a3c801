import { Code, Group, List, Text } from '@mantine/core';
import type { AdminAnswer } from '#contract';
import type { OperationAt } from '../api/client.ts';
import { Section } from '../components/section.tsx';
import { StatusBadge } from '../components/status-badge.tsx';

type Answer = AdminAnswer<OperationAt<'GET', '/agents/{agentId}'>>;
type Note = Answer['readiness'][number];

const POLICIES = {
  allow: { label: 'Allowed', color: 'teal' },
  ask: { label: 'Asks a person', color: 'orange' },
  deny: { label: 'Denied', color: 'red' },
} as const;

interface Props extends Pick<Answer, 'readiness' | 'warnings' | 'toolPolicies' | 'toolServers'> {
  hasManifest: boolean;
}

/** Whether it can run, in the process that answers, and what its tools may do. */
export function ReadinessNotes({ hasManifest, readiness, warnings, toolPolicies, toolServers }: Props) {
  return (
    <>
      <Section title="Readiness" actions={<Verdict {...{ hasManifest, readiness, warnings }} />}>
        {readiness.length + warnings.length === 0 ? (
          <Text size="sm" c="dimmed">
            {hasManifest ? 'Nothing is missing.' : 'No version yet.'}
          </Text>
        ) : (
          <List size="sm" spacing={4}>
            {readiness.map((note) => (
              <NoteItem key={note.detail} note={note} color="red" kind="Missing" />
            ))}
            {warnings.map((note) => (
              <NoteItem key={note.detail} note={note} color="orange" kind="Warning" />
            ))}
          </List>
        )}
      </Section>
      {toolPolicies.length + toolServers.length > 0 && (
        <Section title="Tools">
          <List size="sm" spacing={4}>
            {toolServers.map(({ name, required }) => (
              <List.Item key={`server ${name}`}>
                Tool server <Code>{name}</Code>: {required ? 'required' : 'optional'}
              </List.Item>
            ))}
            {toolPolicies.map(({ pattern, policy }) => (
              <List.Item key={`policy ${pattern}`}>
                <Group gap="xs" component="span" display="inline-flex">
                  Tools like <Code>{pattern}</Code>
                  <StatusBadge color={POLICIES[policy].color}>{POLICIES[policy].label}</StatusBadge>
                </Group>
              </List.Item>
            ))}
          </List>
        </Section>
      )}
    </>
  );
}

function Verdict({ hasManifest, readiness, warnings }: Pick<Props, 'hasManifest' | 'readiness' | 'warnings'>) {
  if (!hasManifest) return <StatusBadge color="gray">No version</StatusBadge>;
  if (readiness.length > 0) return <StatusBadge color="red">Cannot run</StatusBadge>;
  if (warnings.length > 0) return <StatusBadge color="orange">Can run, with warnings</StatusBadge>;
  return <StatusBadge color="teal">Can run</StatusBadge>;
}

function NoteItem({ note, color, kind }: { note: Note; color: string; kind: string }) {
  return (
    <List.Item>
      <Group gap="xs" component="span" display="inline-flex">
        <StatusBadge color={color}>{kind}</StatusBadge>
        {note.message}
      </Group>
      <Text size="xs" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
        {note.detail}
      </Text>
    </List.Item>
  );
}
