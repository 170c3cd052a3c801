import type { Config } from '#platform';
import { ApiError, rateLimited } from '../http/http-errors.ts';

/** The scopes that streams are counted by in one process, the narrowest first. */
const SCOPES = ['thread', 'user', 'token', 'organization', 'process'] as const;
export type StreamScope = (typeof SCOPES)[number];
export type PerScope<Value> = Readonly<Record<StreamScope, Value>>;

/** Seconds until another try: one of the caller's own streams may end at any time. */
const RETRY_OWN_S = 1;
/** A full process stays full for a while. */
const RETRY_PROCESS_S = 5;

const REFUSALS: PerScope<(limit: number) => ApiError> = {
  thread: (limit) =>
    rateLimited(
      'too_many_thread_streams',
      `The Thread has ${limit} open streams in this process; close one of them first.`,
      RETRY_OWN_S,
    ),
  user: (limit) =>
    rateLimited(
      'too_many_streams',
      `The user has ${limit} open streams in this process; close some of them first.`,
      RETRY_OWN_S,
    ),
  token: (limit) =>
    rateLimited(
      'too_many_streams',
      `The token has ${limit} open streams in this process; close some, or ask an operator for more.`,
      RETRY_OWN_S,
    ),
  organization: (limit) =>
    rateLimited(
      'too_many_organization_streams',
      `The organization has ${limit} open streams, its share of this process; close some or try later.`,
      RETRY_OWN_S,
    ),
  process: (limit) =>
    new ApiError(
      'too_many_process_streams',
      `This process has ${limit} open streams, its limit; try again after Retry-After.`,
      { headers: { 'Retry-After': String(RETRY_PROCESS_S) } },
    ),
};

/**
 * Returns the refusal of one more stream; null if it may open. Reports the narrowest limit that is reached, because callers can
 * act on that one.
 */
export function refuseStream(open: PerScope<number>, limits: PerScope<number>): ApiError | null {
  const reached = SCOPES.find((scope) => open[scope] >= limits[scope]);
  return reached === undefined ? null : REFUSALS[reached](limits[reached]);
}

type StreamSettings = Pick<Config, 'STREAMS_PER_THREAD' | 'STREAMS_PER_PROCESS' | 'STREAMS_PERCENT_PER_ORGANIZATION'>;

/** Returns the limits of one caller. `ofUser`: those of a user with browser tokens; other callers have none. */
export function streamLimits(
  settings: StreamSettings,
  { ofUser = Infinity, ofToken }: { ofUser?: number | undefined; ofToken: number },
): PerScope<number> {
  const { STREAMS_PER_PROCESS: process, STREAMS_PERCENT_PER_ORGANIZATION: percent } = settings;
  const organization = Math.max(1, Math.floor((process * percent) / 100));
  return { thread: settings.STREAMS_PER_THREAD, user: ofUser, token: ofToken, organization, process };
}
