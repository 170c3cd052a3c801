import { RUN_STATUS, type RunStatusName } from './status-table.ts';
import { StatusBadge } from './status-badge.tsx';

export function RunStatus({ status }: { status: RunStatusName }) {
  const { color, label } = RUN_STATUS[status];
  return <StatusBadge color={color}>{label}</StatusBadge>;
}
