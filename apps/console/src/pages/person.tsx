import { Button, Group, Stack, Table } from '@mantine/core';
import { Link, useParams } from 'wouter';
import type { PersonRecord } from '#contract';
import { post } from '../api/client.ts';
import { useOperation } from '../api/use-operation.ts';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { FactSection } from '../components/facts.tsx';
import { LoadMore } from '../components/load-more.tsx';
import { NameButton } from '../components/name-button.tsx';
import { PageTitle } from '../components/page-title.tsx';
import { OrganizationPicker } from '../components/pickers.tsx';
import { Empty, QueryState } from '../components/query-state.tsx';
import { OrganizationLink } from '../components/record-link.tsx';
import { RecordTable } from '../components/record-table.tsx';
import { Section } from '../components/section.tsx';
import { ShortId } from '../components/short-id.tsx';
import { AddMembership, MembershipRow } from '../people/membership-table.tsx';
import { TokenTable } from '../tokens/token-table.tsx';

const PAGE = 25;

export default function PersonPage() {
  const { personId } = useParams<{ personId: string }>();
  return <PersonOf key={personId} personId={personId} />;
}

function PersonOf({ personId }: { personId: string }) {
  const query = useOperation('/people/{personId}', { params: { personId } });
  return (
    <>
      {query.data === undefined && <PageTitle title="Person" />}
      <QueryState query={query}>{({ person }) => <PersonView person={person} />}</QueryState>
    </>
  );
}

function PersonView({ person }: { person: PersonRecord }) {
  const { id, name, createdAt } = person;
  return (
    <>
      <PageTitle title={name}>
        <NameButton
          label="Rename"
          title={`Rename person ${name}`}
          name={name}
          done={(changed) => `The person is now called ${changed}.`}
          save={(changed) => post('/people/{personId}', { params: { personId: id }, body: { name: changed } })}
        />
      </PageTitle>
      <Stack gap="md">
        <FactSection
          label={`About ${name}`}
          facts={{ Created: <Ago time={createdAt} />, Id: <ShortId id={id} of="person" /> }}
        />
        <Group gap="xs">
          <Button component={Link} href={`/threads?ownerPersonId=${id}`} variant="default">
            Threads
          </Button>
          <Button component={Link} href={`/audit?targetId=${id}`} variant="default">
            Audit log
          </Button>
        </Group>
        <Organizations person={person} />
        <Tokens person={person} />
      </Stack>
    </>
  );
}

function Organizations({ person }: { person: PersonRecord }) {
  const { id, name, organizationIds } = person;
  return (
    <Section title="Organizations">
      {organizationIds.length === 0 ? (
        <Empty>Not a member of any organization.</Empty>
      ) : (
        <RecordTable
          aria-label={`Organizations of ${name}`}
          minWidth={300}
          columns={['Organization', { name: 'Actions', ta: 'right' }]}
        >
          {organizationIds.map((organizationId) => (
            <OrganizationRow key={organizationId} organizationId={organizationId} person={person} />
          ))}
        </RecordTable>
      )}
      <AddMembership
        label={`Add ${name} to an organization`}
        done={`${name} is a member of another organization.`}
        membershipOf={(organizationId) => ({ organizationId, personId: id })}
      >
        {(picked, pick) => (
          <OrganizationPicker label="Organization" placeholder="By name" value={picked} onChange={pick} />
        )}
      </AddMembership>
    </Section>
  );
}

function OrganizationRow({ organizationId, person }: { organizationId: string; person: PersonRecord }) {
  const { data } = useOperation('/organizations/{organizationId}', { params: { organizationId } });
  const organization = { id: organizationId, name: data?.organization.name ?? organizationId };
  return (
    <MembershipRow organization={organization} person={person}>
      <Table.Td>
        <OrganizationLink {...organization} />
      </Table.Td>
    </MembershipRow>
  );
}

function Tokens({ person: { id, name } }: { person: PersonRecord }) {
  const tokens = usePages('/tokens', { query: { limit: PAGE, personId: id } }, 'tokens');
  return (
    <Section title="Tokens">
      <QueryState query={tokens.query} isEmpty={(items) => items.length === 0} empty="No tokens.">
        {(items) => <TokenTable tokens={items} label={`Tokens of ${name}`} showsOwner={false} />}
      </QueryState>
      <LoadMore pages={tokens} />
    </Section>
  );
}
