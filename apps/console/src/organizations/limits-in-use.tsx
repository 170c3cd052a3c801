import { Text } from '@mantine/core';
import type { OrganizationRecord } from '#contract';
import { formatBytes, formatCount } from '../components/format.ts';

interface Props {
  organization: OrganizationRecord;
}

/** The limit of Runs that are executed at the same time. */
export function ConcurrentRuns({ organization: { concurrency } }: Props) {
  return <>{concurrency.runs === null ? 'The installation’s limit' : `At most ${formatCount(concurrency.runs)}`}</>;
}

/** The number of files and its limit. */
export function Files({ organization: { files } }: Props) {
  return <Used used={files.count} own={files.maxCount} most={files.limits.maxCount} format={formatCount} />;
}

/** The bytes of all files and their limit. */
export function Bytes({ organization: { files } }: Props) {
  return <Used used={files.bytes} own={files.maxBytes} most={files.limits.maxBytes} format={formatBytes} />;
}

interface UsedProps {
  used: number;
  /** The organization's own limit; null for none. */
  own: number | null;
  /** The limit that applies; null for none. */
  most: number | null;
  format: (amount: number) => string;
}

/** The amount in use and the limit. */
function Used({ used, own, most, format }: UsedProps) {
  const limit = most === null ? 'no limit' : `of ${format(most)}`;
  return (
    <>
      {format(used)}
      <Text size="xs" c="dimmed">
        {own === null && most !== null ? `${limit}, the installation’s limit` : limit}
      </Text>
    </>
  );
}
