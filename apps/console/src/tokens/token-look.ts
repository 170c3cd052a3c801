import type { TokenRecord } from '#contract';
import type { Look } from '../components/status-table.ts';

export const TOKEN_KINDS: Record<TokenRecord['kind'], Look> = {
  person: { label: 'Person', color: 'indigo' },
  service: { label: 'Service', color: 'cyan' },
  operator: { label: 'Operator', color: 'grape' },
};

export const TOKEN_STATUSES: Record<TokenRecord['status'], Look> = {
  active: { label: 'Active', color: 'teal' },
  expired: { label: 'Expired', color: 'gray' },
  revoked: { label: 'Revoked', color: 'red' },
};

const DAY_MS = 24 * 60 * 60 * 1_000;

/** How long a new token is good for, in days; null: until it is revoked. */
export const LIFETIMES: { label: string; days: number | null }[] = [
  { label: '1 day', days: 1 },
  { label: '30 days', days: 30 },
  { label: '90 days', days: 90 },
  { label: '1 year', days: 365 },
  { label: 'Never', days: null },
];

/** When a token that is minted now expires. */
export const expiryAfter = (days: number | null, now: number): string | null =>
  days === null ? null : new Date(now + days * DAY_MS).toISOString();

/** How long the old secret works beside a new one, in seconds. */
export const GRACES: { label: string; seconds: number }[] = [
  { label: 'not at all', seconds: 0 },
  { label: 'for 1 hour', seconds: 3_600 },
  { label: 'for 1 day', seconds: 86_400 },
  { label: 'for 7 days', seconds: 604_800 },
];

/** An hour, to deploy the new secret. */
export const DEFAULT_GRACE = GRACES[1]!;
