import { formatAgo, formatTime } from './format.ts';
import { useClock } from './clock.ts';

/** A time as people think of it, such as `3 min ago`; the exact one as title. Nothing: a dash. */
export function Ago({ time }: { time: string | null | undefined }) {
  const told = useClock((now) => (time ? formatAgo(Date.parse(time), now) : '–'));
  if (!time) return told;
  return (
    <time dateTime={time} title={formatTime(time)}>
      {told}
    </time>
  );
}
