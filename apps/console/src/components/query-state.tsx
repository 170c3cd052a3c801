import type { ReactNode } from 'react';
import { Alert, Button, Center, Group, Loader, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { CallError } from '../api/client.ts';
import { meansUnreachable } from '../api/reachability.ts';
import classes from './parts.module.css';

/** The fields of a react-query query that this component uses. */
interface Asked<Data> {
  data: Data | undefined;
  error: Error | null;
  isFetching: boolean;
  /** Whether the data belongs to the query before, because the answer has not arrived. */
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

interface Props<Data> {
  query: Asked<Data>;
  /** Shown if `isEmpty` returns true. */
  empty?: ReactNode;
  isEmpty?: (data: Data) => boolean;
  children: (data: Data) => ReactNode;
}

/** Shows a loader, then the data. The data is dimmed while the next answer loads. An error appears above it. */
export function QueryState<Data>({ query, empty, isEmpty, children }: Props<Data>) {
  const { data, error, isFetching, isPlaceholderData, refetch } = query;
  // The frame says that the service is unavailable, and the data stays.
  const isTold = data !== undefined && error instanceof CallError && meansUnreachable(error.status);
  const failed = error && !isTold && <ErrorNote error={error} isBusy={isFetching} onTryAgain={() => void refetch()} />;
  if (data === undefined) return failed || <Loading />;
  return (
    <>
      {failed}
      <div className={classes.read} aria-busy={isPlaceholderData}>
        {isEmpty?.(data) ? <Empty>{empty ?? 'No results.'}</Empty> : children(data)}
      </div>
    </>
  );
}

/** The message of the API, with a button that tries again. */
export function ErrorNote(props: { error: Error; isBusy?: boolean; onTryAgain?: () => void }) {
  return (
    <Alert role="alert" color="red" icon={<IconAlertTriangle size={18} />} py="xs" mb="sm">
      <Group justify="space-between" gap="xs">
        <Text size="sm">{props.error.message}</Text>
        {props.onTryAgain && (
          <Button variant="default" loading={props.isBusy ?? false} onClick={props.onTryAgain}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

export function Loading() {
  return (
    <Center mih={160}>
      <Loader size="sm" aria-label="Loading" role="status" />
    </Center>
  );
}

export function Empty({ children }: { children: ReactNode }) {
  return (
    <Text c="dimmed" size="sm" py="lg" ta="center">
      {children}
    </Text>
  );
}
