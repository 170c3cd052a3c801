import { Alert, Anchor, Button, Code, Group, Paper, Stack, Text } from '@mantine/core';
import type { AdminAnswer, ManagedAgent } from '#contract';
import { Link, useParams } from 'wouter';
import type { OperationAt } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { AgentActions } from '../agents/agent-actions.tsx';
import { AgentState } from '../agents/agent-state.tsx';
import { InvitedPeople } from '../agents/invited-people.tsx';
import { ManifestView } from '../agents/manifest-view.tsx';
import { ReadinessNotes } from '../agents/readiness-notes.tsx';
import { Versions } from '../agents/versions.tsx';
import { Ago } from '../components/ago.tsx';
import { FactList } from '../components/facts.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
import { QueryState } from '../components/query-state.tsx';
import { ShortId } from '../components/short-id.tsx';
import { Section } from '../components/section.tsx';

type AgentAnswer = AdminAnswer<OperationAt<'GET', '/agents/{agentId}'>>;

export default function AgentPage() {
  const { agentId } = useParams<{ agentId: string }>();
  return <AgentOf key={agentId} agentId={agentId} />;
}

function AgentOf({ agentId }: { agentId: string }) {
  const query = useOperation('/agents/{agentId}', { params: { agentId } });
  return (
    <>
      <Anchor component={Link} href="/agents" size="sm">
        ← All Agents
      </Anchor>
      {query.data === undefined && <PageTitle title="Agent" />}
      <QueryState query={query}>{(answer) => <AgentSections {...answer} />}</QueryState>
    </>
  );
}

function AgentSections({ agent, manifest, ...answer }: AgentAnswer) {
  const isDeleted = agent.deletedAt !== null;
  return (
    <>
      <PageTitle title={agent.name}>{!isDeleted && <AgentActions agent={agent} />}</PageTitle>
      <Stack gap="md">
        {isDeleted && (
          <Alert color="red" title="This Agent is deleted">
            Callers cannot find it or its Threads. Deleted <Ago time={agent.deletedAt} />.
          </Alert>
        )}
        <Head agent={agent} />
        <ReadinessNotes hasManifest={manifest !== null} {...answer} />
        <Section title="Live manifest">
          {manifest === null ? (
            <Text size="sm">
              No version yet: <Code>spool agent apply</Code> creates the first.
            </Text>
          ) : (
            <ManifestView manifest={manifest} of={`The live manifest of ${agent.name}`} />
          )}
        </Section>
        <Versions agent={agent} live={manifest} />
        <InvitedPeople agent={agent} />
      </Stack>
    </>
  );
}

function Head({ agent }: { agent: ManagedAgent }) {
  return (
    <Paper component="section" withBorder p="sm" aria-label={`About ${agent.name}`}>
      {agent.description !== '' && (
        <Text size="sm" mb="sm">
          {agent.description}
        </Text>
      )}
      <FactList
        facts={{
          Callers: <AgentState agent={agent} />,
          Organization: <OrganizationLink id={agent.organizationId} name={agent.organizationName} />,
          Kind: agent.kind === 'pet' ? 'Pet: one folder for all its Threads' : 'Cattle',
          'Live version': agent.liveVersion ?? 'none',
          Created: <Ago time={agent.createdAt} />,
          Id: <ShortId id={agent.id} of="Agent" />,
        }}
      />
      <Group gap="xs" mt="sm">
        <Button component={Link} href={`/threads?agentId=${agent.id}`} variant="default">
          Its Threads
        </Button>
        <Button component={Link} href={`/runs?scope=all&agentId=${agent.id}`} variant="default">
          Its Runs
        </Button>
      </Group>
    </Paper>
  );
}
