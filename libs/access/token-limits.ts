import type { Config } from '#platform';
import type { TokenKind } from './token-format.ts';

/** The limits in force for one token. */
export interface TokenLimits {
  requestsPerMinute: number;
  /** Open event streams per process; null for operators. */
  maxStreams: number | null;
}

/** The limits that an operator has set for one token; null means the default of its kind. */
export type OwnLimits = { [Name in keyof TokenLimits]: number | null };

/** The settings with the defaults. */
export type LimitSettings = Pick<
  Config,
  | 'RATE_LIMIT_PER_PERSON_TOKEN'
  | 'RATE_LIMIT_PER_SERVICE_TOKEN'
  | 'STREAMS_PER_PERSON_TOKEN'
  | 'STREAMS_PER_SERVICE_TOKEN'
  | 'RATE_LIMIT_PER_BROWSER_USER'
  | 'STREAMS_PER_BROWSER_USER'
>;

/** Returns the limits in force for a token. */
export function limitsOf(kind: TokenKind, own: OwnLimits, settings: LimitSettings): TokenLimits {
  const defaults = defaultLimits(settings)[kind];
  return {
    requestsPerMinute: own.requestsPerMinute ?? defaults.requestsPerMinute,
    maxStreams: defaults.maxStreams === null ? null : (own.maxStreams ?? defaults.maxStreams),
  };
}

/** Returns the limits of one user with browser tokens. */
export const limitsOfUser = (settings: LimitSettings): TokenLimits => ({
  requestsPerMinute: settings.RATE_LIMIT_PER_BROWSER_USER,
  maxStreams: settings.STREAMS_PER_BROWSER_USER,
});

const defaultLimits = (settings: LimitSettings): Record<TokenKind, TokenLimits> => ({
  person: {
    requestsPerMinute: settings.RATE_LIMIT_PER_PERSON_TOKEN,
    maxStreams: settings.STREAMS_PER_PERSON_TOKEN,
  },
  service: {
    requestsPerMinute: settings.RATE_LIMIT_PER_SERVICE_TOKEN,
    maxStreams: settings.STREAMS_PER_SERVICE_TOKEN,
  },
  operator: { requestsPerMinute: settings.RATE_LIMIT_PER_PERSON_TOKEN, maxStreams: null },
});
