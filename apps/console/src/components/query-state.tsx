import type { ReactNode } from 'react';
import { Alert, Button, Center, Group, Loader, Text } from '@mantine/core';
import { IconAlertTriangle } from '@tabler/icons-react';
import { CallError } from '../api/client.ts';
import { meansUnreachable } from '../api/reachability.ts';
import classes from './parts.module.css';

/** What this needs of a query of react-query. */
interface Asked<Data> {
  data: Data | undefined;
  error: Error | null;
  isFetching: boolean;
  /** The data are of what was asked before, until the answer is there. */
  isPlaceholderData: boolean;
  refetch: () => unknown;
}

interface Props<Data> {
  query: Asked<Data>;
  /** Says that there is nothing, where `isEmpty` says so. */
  empty?: ReactNode;
  isEmpty?: (data: Data) => boolean;
  children: (data: Data) => ReactNode;
}

/** What was read, pale while another answer is awaited; before that a loader; when it could not be read the reason above it. */
export function QueryState<Data>({ query, empty, isEmpty, children }: Props<Data>) {
  const { data, error, isFetching, isPlaceholderData, refetch } = query;
  // That the service is away, the frame says; what was read before stands.
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

/** The API's own message, and the way to try again. */
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
