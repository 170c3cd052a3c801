import { useEffect } from 'react';
import { Alert } from '@mantine/core';
import { IconPlugConnectedX } from '@tabler/icons-react';
import { useQueryClient } from '@tanstack/react-query';
import { useAwaySince } from '../api/reachability.ts';
import { formatTime } from '../parts/format.ts';

/** Says that the service is away. What is on the page stays; once it answers again, everything is read anew. */
export function AwayBanner() {
  const awaySince = useAwaySince();
  const isAway = awaySince !== null;
  const queries = useQueryClient();
  useEffect(() => {
    if (!isAway) return;
    return () => void queries.invalidateQueries();
  }, [isAway, queries]);
  if (!isAway) return null;
  return (
    <Alert role="status" color="orange" mb="md" py="xs" icon={<IconPlugConnectedX size={18} />} title="No connection">
      The service has not responded since {formatTime(awaySince)}. This page shows data from then and updates itself
      when the service is back.
    </Alert>
  );
}
