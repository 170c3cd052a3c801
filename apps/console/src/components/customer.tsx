import { Anchor, Text } from '@mantine/core';
import { Link } from 'wouter';

interface Whose {
  /** The user of the application; undefined if the service is older. */
  userId?: string | undefined;
  organizationId: string;
  /** The list that the link leads to. */
  list?: 'runs' | 'threads' | undefined;
}

/** The user of the application that a Thread or Run is for, with the organization. */
export function Customer({ userId, organizationId, organizationName, list }: Whose & { organizationName: string }) {
  return (
    <>
      <CustomerLink {...{ userId, organizationId, list }} />
      <Text size="xs" c="dimmed" truncate title={organizationName}>
        {organizationName}
      </Text>
    </>
  );
}

/** A link to all Runs or Threads of a user of the application. */
export function CustomerLink({ userId, organizationId, list = 'runs' }: Whose) {
  if (userId === undefined) return <>–</>;
  const scope = list === 'runs' ? { scope: 'all' } : {};
  const query = new URLSearchParams({ userId, organizationId, ...scope });
  return (
    <Anchor component={Link} href={`/${list}?${query.toString()}`} size="sm" truncate display="block" title={userId}>
      {userId}
    </Anchor>
  );
}
