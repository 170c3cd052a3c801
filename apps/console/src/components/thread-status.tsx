import { THREAD_STATUS, type ThreadStatusName } from './status-table.ts';
import { StatusBadge } from './status-badge.tsx';

export function ThreadStatus({ status }: { status: ThreadStatusName }) {
  const { color, label } = THREAD_STATUS[status];
  return <StatusBadge color={color}>{label}</StatusBadge>;
}
