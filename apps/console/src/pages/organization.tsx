import { Button, Group, Stack, Table } from '@mantine/core';
import { Link, useParams } from 'wouter';
import type { OrganizationRecord } from '#contract';
import { AgentTable } from '../agents/agent-table.tsx';
import { post } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { FactSection } from '../components/facts.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { NameButton } from '../components/name-button.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { PersonPicker } from '../components/pickers.tsx';
import { QueryState } from '../components/query-state.tsx';
import { PersonLink } from '../components/record-link.tsx';
import { RecordTable } from '../components/record-table.tsx';
import { Section } from '../components/section.tsx';
import { ShortId } from '../components/short-id.tsx';
import { Bytes, ConcurrentRuns, Files } from '../organizations/limits-in-use.tsx';
import { LimitOrganization } from '../organizations/organization-limits.tsx';
import { AddMembership, MembershipRow } from '../people/membership-table.tsx';
import { TokenTable } from '../tokens/token-table.tsx';

const PAGE = 25;

export default function OrganizationPage() {
  const { organizationId } = useParams<{ organizationId: string }>();
  return <OrganizationOf key={organizationId} organizationId={organizationId} />;
}

function OrganizationOf({ organizationId }: { organizationId: string }) {
  const query = useOperation('/organizations/{organizationId}', { params: { organizationId } });
  return (
    <>
      {query.data === undefined && <PageTitle title="Organization" />}
      <QueryState query={query}>{({ organization }) => <OrganizationView organization={organization} />}</QueryState>
    </>
  );
}

function OrganizationView({ organization }: { organization: OrganizationRecord }) {
  const { id, name } = organization;
  return (
    <>
      <PageTitle title={name}>
        <Group gap="xs">
          <LimitOrganization organization={organization} />
          <NameButton
            label="Rename"
            title={`Rename organization ${name}`}
            name={name}
            done={(changed) => `The organization is now called ${changed}.`}
            save={(changed) =>
              post('/organizations/{organizationId}', { params: { organizationId: id }, body: { name: changed } })
            }
          />
        </Group>
      </PageTitle>
      <Stack gap="md">
        <FactSection
          label={`About ${name}`}
          facts={{
            'Runs at the same time': <ConcurrentRuns organization={organization} />,
            Files: <Files organization={organization} />,
            Bytes: <Bytes organization={organization} />,
            Created: <Ago time={organization.createdAt} />,
            Id: <ShortId id={id} of="organization" />,
          }}
        />
        <Lists organizationId={id} />
        <Agents organization={organization} />
        <Members organization={organization} />
        <Tokens organization={organization} />
      </Stack>
    </>
  );
}

function Lists({ organizationId }: { organizationId: string }) {
  const lists = {
    'Live Runs': `/runs?organizationId=${organizationId}`,
    'Failed Runs': `/runs?scope=all&status=failed&organizationId=${organizationId}`,
    Threads: `/threads?organizationId=${organizationId}`,
  };
  return (
    <Group gap="xs">
      {Object.entries(lists).map(([label, href]) => (
        <Button key={label} component={Link} href={href} variant="default">
          {label}
        </Button>
      ))}
    </Group>
  );
}

function Agents({ organization: { id, name } }: { organization: OrganizationRecord }) {
  const agents = usePages('/agents', { query: { limit: PAGE, organizationId: id } }, 'agents');
  return (
    <Section title="Agents">
      <QueryState query={agents.query} isEmpty={(items) => items.length === 0} empty="No Agents.">
        {(items) => <AgentTable agents={items} label={`Agents of ${name}`} showsOrganization={false} />}
      </QueryState>
      <LoadMore pages={agents} />
    </Section>
  );
}

function Members({ organization }: { organization: OrganizationRecord }) {
  const { id, name } = organization;
  const members = usePages('/people', { query: { limit: PAGE, organizationId: id } }, 'people');
  return (
    <Section
      title="Members"
      actions={
        <NameButton
          label="Create person"
          title={`Create person in ${name}`}
          done={(created) => `${created} is a member of ${name}.`}
          save={(created) => post('/people', { body: { name: created, organizationIds: [id] } })}
        />
      }
    >
      <QueryState query={members.query} isEmpty={(items) => items.length === 0} empty="No members.">
        {(people) => (
          <RecordTable
            aria-label={`Members of ${name}`}
            minWidth={400}
            columns={['Person', 'Created', { name: 'Actions', ta: 'right' }]}
          >
            {people.map((person) => (
              <MembershipRow key={person.id} organization={organization} person={person}>
                <Table.Td>
                  <PersonLink id={person.id} name={person.name} />
                </Table.Td>
                <Table.Td>
                  <Ago time={person.createdAt} />
                </Table.Td>
              </MembershipRow>
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={members} />
      <AddMembership
        label={`Add a member to ${name}`}
        done={`${name} has a new member.`}
        membershipOf={(personId) => ({ organizationId: id, personId })}
      >
        {(picked, pick) => <PersonPicker label="Person" placeholder="By name" value={picked} onChange={pick} />}
      </AddMembership>
    </Section>
  );
}

function Tokens({ organization: { id, name } }: { organization: OrganizationRecord }) {
  const tokens = usePages('/tokens', { query: { limit: PAGE, organizationId: id } }, 'tokens');
  return (
    <Section title="Service tokens">
      <QueryState query={tokens.query} isEmpty={(items) => items.length === 0} empty="No service tokens.">
        {(items) => <TokenTable tokens={items} label={`Service tokens of ${name}`} />}
      </QueryState>
      <LoadMore pages={tokens} />
    </Section>
  );
}
