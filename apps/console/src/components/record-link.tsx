import { Anchor } from '@mantine/core';
import { Link } from 'wouter';

/** A link to the page of an organization. */
export function OrganizationLink({ id, name }: { id: string; name: string }) {
  return (
    <Anchor component={Link} href={`/organizations/${id}`} size="sm">
      {name}
    </Anchor>
  );
}

/** A link to the page of a person. */
export function PersonLink({ id, name }: { id: string; name: string }) {
  return (
    <Anchor component={Link} href={`/people/${id}`} size="sm">
      {name}
    </Anchor>
  );
}
