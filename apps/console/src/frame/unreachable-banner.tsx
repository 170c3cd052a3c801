import { useEffect } from 'react';
import { Alert } from '@mantine/core';
import { IconPlugConnectedX } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useUnreachableSince } from '../api/reachability.ts';
import { formatTime } from '../components/format.ts';

/** Says that the service is away. What is on the page stays; once it answers again, everything is read anew. */
export function UnreachableBanner() {
  const unreachableSince = useUnreachableSince();
  const isUnreachable = unreachableSince !== null;
  const queries = useQueryClient();
  useEffect(() => {
    if (!isUnreachable) return;
    return () => void queries.invalidateQueries();
  }, [isUnreachable, queries]);
  if (!isUnreachable) return null;
  return (
    <Alert role="status" color="orange" mb="md" py="xs" icon={<IconPlugConnectedX size={18} />} title="No connection">
      The service has not responded since {formatTime(unreachableSince)}. This page shows data from then and updates
      itself when the service is back.
    </Alert>
  );
}
