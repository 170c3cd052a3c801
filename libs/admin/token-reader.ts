import { limitsOf, type LimitSettings } from '#access';
import type { TokenRecord } from '#contract';
import type { Queryable } from '#platform';
import type { Change } from './audit.ts';
import { AdminReader, type TokenRow, type TokensWanted } from './reader.ts';
import { missing } from './refused.ts';

/** Reads tokens with the limits in force. */
export class TokenReader {
  private readonly reader: AdminReader;

  constructor(
    database: Queryable,
    private readonly settings: LimitSettings,
  ) {
    this.reader = new AdminReader(database);
  }

  async list(wanted: TokensWanted): Promise<TokenRecord[]> {
    const rows = await this.reader.tokens(wanted);
    return rows.map((row: TokenRow) => ({ ...row, limits: limitsOf(row.kind, row, this.settings) }));
  }

  /** Throws AdminRefused. */
  async find(id: string): Promise<TokenRecord> {
    const [token] = await this.list({ id });
    if (token === undefined) throw missing('token', id);
    return token;
  }
}

/** Returns the audit entry of a change of a token. */
export function aboutToken(
  { id, organizationId }: TokenRecord,
  action: string,
  details: Change['details'] & object,
): Change {
  return { action, targetId: id, organizationId, details };
}

/** Returns the audit entry of a new token. */
export function aboutNewToken(token: TokenRecord): Change {
  const { kind, name, personId, agentIds, allowAttribution, expiresAt, requestsPerMinute, maxStreams } = token;
  const what = { kind, name, personId, agentIds, allowAttribution, expiresAt };
  // Only if they are set, so that the entries of tokens with default limits do not change.
  const limits = { ...(requestsPerMinute && { requestsPerMinute }), ...(maxStreams && { maxStreams }) };
  return aboutToken(token, 'token.minted', { ...what, ...limits });
}
