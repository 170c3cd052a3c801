import { Table, Text } from '@mantine/core';
import type { TokenRecord } from '#contract';
import { Ago } from '../components/ago.tsx';
import { counted } from '../components/format.ts';
import { OrganizationLink, PersonLink } from '../components/record-link.tsx';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { ShortId } from '../components/short-id.tsx';
import { StatusBadge } from '../components/status-badge.tsx';
import { TokenActions } from './token-actions.tsx';
import { LimitsInForce } from './token-limits.tsx';
import { TOKEN_KINDS, TOKEN_STATUSES } from './token-look.ts';

interface Props {
  tokens: TokenRecord[];
  label?: string;
  /** Whether the column of owners is shown. */
  showsOwner?: boolean;
}

/** Tokens with their owner, status, limits and actions. */
export function TokenTable({ tokens, label = 'Tokens', showsOwner = true }: Props) {
  const owner = showsOwner ? ['Owner'] : [];
  return (
    <RecordTable
      aria-label={label}
      minWidth={1000}
      columns={[
        'Token',
        'Kind',
        ...owner,
        'Status',
        'Limits',
        'Last used',
        'Expires',
        { name: 'Actions', ta: 'right' },
      ]}
    >
      {tokens.map((token) => (
        <TokenRow key={token.id} {...{ token, showsOwner }} />
      ))}
    </RecordTable>
  );
}

function TokenRow({ token, showsOwner }: { token: TokenRecord; showsOwner: boolean }) {
  return (
    <RecordRow>
      <Table.Td>
        <Text size="sm" fw={600}>
          {token.name}
        </Text>
        <ShortId id={token.id} of="token" />
      </Table.Td>
      <Table.Td>
        <StatusBadge color={TOKEN_KINDS[token.kind].color}>{TOKEN_KINDS[token.kind].label}</StatusBadge>
      </Table.Td>
      {showsOwner && (
        <Table.Td>
          <Whose token={token} />
        </Table.Td>
      )}
      <Table.Td>
        <StatusBadge color={TOKEN_STATUSES[token.status].color}>{TOKEN_STATUSES[token.status].label}</StatusBadge>
        <Since token={token} />
      </Table.Td>
      <Table.Td>
        <LimitsInForce token={token} />
      </Table.Td>
      <Table.Td>{token.lastUsedAt === null ? 'never' : <Ago time={token.lastUsedAt} />}</Table.Td>
      <Table.Td>{token.expiresAt === null ? 'never' : <Ago time={token.expiresAt} />}</Table.Td>
      <Table.Td>{token.status === 'active' && <TokenActions token={token} />}</Table.Td>
    </RecordRow>
  );
}

function Whose({ token }: { token: TokenRecord }) {
  const { personId, personName, organizationId, organizationName } = token;
  if (personId !== null) return <PersonLink id={personId} name={personName ?? personId} />;
  if (organizationId === null) return <>operators</>;
  return (
    <>
      <OrganizationLink id={organizationId} name={organizationName ?? organizationId} />
      <Text size="xs" c="dimmed">
        {counted(token.agentIds.length, 'Agent')}
        {token.allowAttribution && ', on behalf of people'}
      </Text>
    </>
  );
}

/** Shows when a token was revoked or its secret was rotated. */
function Since({ token }: { token: TokenRecord }) {
  const [what, time] =
    token.revokedAt !== null ? ['', token.revokedAt] : token.rotatedAt !== null ? ['rotated ', token.rotatedAt] : [];
  if (what === undefined) return null;
  return (
    <Text size="xs" c="dimmed">
      {what}
      <Ago time={time} />
    </Text>
  );
}
