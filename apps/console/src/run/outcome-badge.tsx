import type { TimelineSpan } from '#contract';
import { StatusBadge } from '../components/status-badge.tsx';

type Outcome = NonNullable<TimelineSpan['outcome']>;

const OUTCOMES: Record<Outcome, { label: string; color: string }> = {
  ok: { label: 'OK', color: 'teal' },
  error: { label: 'Error', color: 'red' },
  refused: { label: 'Refused', color: 'grape' },
  unknown: { label: 'Outcome unknown', color: 'orange' },
  cut: { label: 'Cut', color: 'orange' },
};

/** The outcome of a span or an attempt. */
export function OutcomeBadge({ outcome, isActive }: { outcome: Outcome | null; isActive: boolean }) {
  if (outcome !== null) return <StatusBadge color={OUTCOMES[outcome].color}>{OUTCOMES[outcome].label}</StatusBadge>;
  return isActive ? <StatusBadge color="indigo">Running</StatusBadge> : null;
}
