import { type Delays, reportFigure } from '#testing';

/** The goals for the delays of an event loop, milliseconds. */
const GOALS = { p99: 50, max: 200 };
const NAMES = { p99: 'p99', max: 'longest' };

export const delayCell = ({ p99, max }: Delays): string => `${p99.toFixed(0)} / ${max.toFixed(0)} ms`;

/** Reports each goal that one row of a table missed. The table has all other figures. */
export function reportMissedGoals(row: string, measured: Record<string, Delays>): void {
  for (const [how, delays] of Object.entries(measured))
    for (const which of ['p99', 'max'] as const)
      if (delays[which] > GOALS[which])
        reportFigure(
          `${row}, ${how}: ${NAMES[which]} delay ${delays[which].toFixed(0)} ms (goal ${GOALS[which]} ms: MISSED)`,
        );
}
