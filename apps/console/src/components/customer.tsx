import { Text } from '@mantine/core';

interface Props {
  /** The user of the application; undefined if the service is older. */
  userId: string | undefined;
  organizationName: string;
}

/** The user of the application that a Thread or Run is for, with the organization. */
export function Customer({ userId = '–', organizationName }: Props) {
  return (
    <>
      <Text size="sm" truncate title={userId}>
        {userId}
      </Text>
      <Text size="xs" c="dimmed" truncate title={organizationName}>
        {organizationName}
      </Text>
    </>
  );
}
