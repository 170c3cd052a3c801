import type { ManagedRun } from '#contract';
import type { OptionSpec } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { agentId, optional, organizationId } from '../resolve.ts';
import type { Session } from '../session.ts';
import { parseSince } from '../when.ts';

interface RunFilters {
  org?: string;
  agent?: string;
  status?: ManagedRun['status'];
  error?: string;
  cause?: string;
  userId?: string;
  externalRef?: string;
  since?: string;
  endedSince?: string;
}

/** Options that choose Runs. */
export type RunFilterOptions = Options & RunFilters;

const NAMES: Record<keyof RunFilters, true> = {
  ...{ org: true, agent: true, status: true, error: true, cause: true, userId: true, externalRef: true },
  ...{ since: true, endedSince: true },
};

/** Returns whether at least one filter is given. */
export const hasFilters = (options: RunFilterOptions): boolean =>
  Object.keys(NAMES).some((name) => options[name] !== undefined);

export const LIVE: readonly ManagedRun['status'][] = ['queued', 'booting', 'running', 'waiting_input'];
export const ENDED: readonly ManagedRun['status'][] = ['failed', 'cancelled', 'expired'];

/** @param status the option `--status`, which means something else for each command */
export const runFilterOptions = (status: OptionSpec): readonly OptionSpec[] => [
  { flags: '--org <org>', description: 'only this organization’s' },
  { flags: '--agent <agent>', description: 'only this Agent’s' },
  status,
  { flags: '--error <code>', description: 'only Runs that failed with this code' },
  {
    flags: '--cause <cause>',
    description: 'only Runs with this cause, as the list shows it: "HTTP 503 from api.example"',
  },
  { flags: '--user-id <id>', description: 'only Runs of this user id of the application' },
  { flags: '--external-ref <ref>', description: 'only Runs of Threads with this reference' },
  {
    flags: '--since <when>',
    description: 'only Runs created since a date, or a time ago: 7d, 12h',
    parse: parseSince,
  },
];

/** The filter by the time of the end, for commands that can choose ended Runs. */
export const ENDED_SINCE: OptionSpec = {
  flags: '--ended-since <when>',
  description: 'only Runs that ended since a date, or a time ago: 7d, 12h',
  parse: parseSince,
};

/** Returns the filters with ids instead of names. Throws CommandError. */
export async function readRunFilter(session: Session, options: RunFilterOptions) {
  const { org, agent, status, error, cause, userId, externalRef, since, endedSince } = options;
  const organization = await optional(organizationId, session, org);
  return {
    organizationId: organization,
    agentId: agent === undefined ? undefined : await agentId(session, agent, organization),
    status,
    errorCode: error,
    cause,
    userId,
    externalRef,
    since,
    endedSince,
  };
}
