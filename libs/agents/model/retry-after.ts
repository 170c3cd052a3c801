/**
 * How long the provider wants to be left alone, milliseconds; undefined where it does not say. By `retry-after-ms`, else
 * `Retry-After` (RFC 9110: seconds, or a date), else, where asked for, the time at which Anthropic's limits begin anew.
 *
 * @param now milliseconds since 1970
 */
export function retryAfterMs(
  headers: Readonly<Record<string, string>>,
  { now, byLimits }: { now: number; byLimits: boolean },
): number | undefined {
  const inMs = numberOf(headers['retry-after-ms']);
  if (inMs !== undefined) return inMs;
  const header = headers['retry-after'];
  const seconds = numberOf(header);
  if (seconds !== undefined) return seconds * 1_000;
  return untilDate(header, now) ?? (byLimits ? untilLimitsReset(headers, now) : undefined);
}

function numberOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d{1,10}(\.\d{1,6})?\s*$/.test(text) ? Number(text) : undefined;
}

function untilDate(text: string | undefined, now: number): number | undefined {
  // `Date.parse` reads nearly anything: `-5` too.
  const date = text !== undefined && /\d{2}:\d{2}/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

const LIMIT_RESET = /^anthropic-ratelimit-(.+)-reset$/;

/** The latest of the limits that are used up; of all, where none says so. */
function untilLimitsReset(headers: Readonly<Record<string, string>>, now: number): number | undefined {
  const limits = Object.keys(headers).flatMap((name) => LIMIT_RESET.exec(name)?.[1] ?? []);
  const usedUp = limits.filter((limit) => headers[`anthropic-ratelimit-${limit}-remaining`] === '0');
  const waits = (usedUp.length > 0 ? usedUp : limits).flatMap(
    (limit) => untilDate(headers[`anthropic-ratelimit-${limit}-reset`], now) ?? [],
  );
  return waits.length > 0 ? Math.max(...waits) : undefined;
}
