const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time in at most two units, such as `350 ms`, `4.2 s`, `3 min 5 s`, `2 d 4 h`. */
export function formatDuration(ms: number): string {
  const length = Math.max(0, ms);
  if (length < SECOND) return `${Math.round(length)} ms`;
  if (length < 9.95 * SECOND) return `${(length / SECOND).toFixed(1)} s`;
  if (length < MINUTE - SECOND / 2) return `${Math.round(length / SECOND)} s`;
  if (length < HOUR) return inTwoUnits(Math.round(length / SECOND), 60, 'min', 's');
  if (length < DAY) return inTwoUnits(Math.round(length / MINUTE), 60, 'h', 'min');
  return inTwoUnits(Math.round(length / HOUR), 24, 'd', 'h');
}

function inTwoUnits(amount: number, size: number, large: string, small: string): string {
  const whole = Math.floor(amount / size);
  const rest = amount % size;
  return rest === 0 ? `${whole} ${large}` : `${whole} ${large} ${rest} ${small}`;
}

/** How long ago at least, or in how long at most; whole units only, so that it stands still while one reads. */
export function formatAgo(at: number, now: number): string {
  const distance = Math.abs(now - at);
  if (distance < 5 * SECOND) return 'just now';
  return at > now ? `in ${inOneUnit(distance, Math.ceil)}` : `${inOneUnit(distance, Math.floor)} ago`;
}

function inOneUnit(ms: number, toWhole: (units: number) => number): string {
  if (ms < MINUTE) return `${toWhole(ms / SECOND)} s`;
  if (ms < HOUR) return `${toWhole(ms / MINUTE)} min`;
  if (ms < 2 * DAY) return `${toWhole(ms / HOUR)} h`;
  return `${toWhole(ms / DAY)} d`;
}

const exact = new Intl.DateTimeFormat('en-GB', {
  ...{ year: 'numeric', month: '2-digit', day: '2-digit' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23', timeZoneName: 'short' },
});

/** To the second, in the time zone of the reader, with the zone: `2026-11-22 09:31:04 GMT+1`. */
export function formatTime(time: string | number): string {
  const parts = exact.formatToParts(new Date(time));
  const part = Object.fromEntries(parts.map(({ type, value }) => [type, value]));
  return `${part.year}-${part.month}-${part.day} ${part.hour}:${part.minute}:${part.second} ${part.timeZoneName}`;
}

const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(BYTE_UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** power;
  return `${power > 0 && amount < 10 ? amount.toFixed(1) : Math.round(amount)} ${BYTE_UNITS[power]}`;
}

const whole = new Intl.NumberFormat('en-GB');
export const formatCount = (amount: number): string => whole.format(amount);

/** The noun as the number wants it: `1 Run`, `2 Runs`. */
export const counted = (amount: number, noun: string): string =>
  `${formatCount(amount)} ${noun}${amount === 1 ? '' : 's'}`;

/** The beginning and the end of an id: ULIDs of the same hour begin alike, so the end tells more. */
export const shortenId = (id: string): string => (id.length <= 14 ? id : `${id.slice(0, 4)}…${id.slice(-6)}`);
