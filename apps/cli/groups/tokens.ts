import type { MintedTokenAnswer, TokenRecord } from '#contract';
import type { CallOf } from '../admin-client.ts';
import type { CommandSpec, Group } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { CommandError } from '../exit-codes.ts';
import { parseLimit, parseNewLimit, type GivenLimit } from '../limits.ts';
import { agentId, optional, organizationId, personId, tokenId } from '../resolve.ts';
import type { Paging, Session } from '../session.ts';
import { renderFields, type Column } from '../table.ts';
import { parseDuration, parseExpiry, parseNewExpiry } from '../when.ts';
import { PAGING } from './paging.ts';
import { check } from './token-check.ts';

const columns: Column<TokenRecord>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'kind', value: ({ kind }) => kind },
  { head: 'status', value: ({ status }) => status },
  { head: 'name', value: ({ name }) => name, cut: true },
  { head: 'of', value: ({ personId, organizationId }) => personId ?? organizationId, wide: true },
  { head: 'expires', value: ({ expiresAt }) => expiresAt, wide: true },
  { head: 'last used', value: ({ lastUsedAt }) => lastUsedAt, wide: true },
];

/** Returns the limit in force and whether it is the default; null if the token has none. */
function limitText(token: TokenRecord, name: 'requestsPerMinute' | 'maxStreams'): string | null {
  const inForce = token.limits[name];
  return inForce === null ? null : `${inForce}${token[name] === null ? ' (default)' : ''}`;
}

const tokenFields = (token: TokenRecord): string =>
  renderFields([
    ['id', token.id],
    ['name', token.name],
    ['kind', token.kind],
    ['status', token.status],
    ['person', token.personName],
    ['person id', token.personId],
    ['organization', token.organizationName],
    ['organization id', token.organizationId],
    ['agents', token.agentIds],
    ['attribution', token.allowAttribution],
    ['requests per minute', limitText(token, 'requestsPerMinute')],
    ['streams per process', limitText(token, 'maxStreams')],
    ['created', token.createdAt],
    ['expires', token.expiresAt],
    ['revoked', token.revokedAt],
    ['rotated', token.rotatedAt],
    ['old secret until', token.oldSecretUntil],
    ['last used', token.lastUsedAt],
  ]);

type LimitOptions = Options & { requestsPerMinute?: GivenLimit; streams?: GivenLimit };

const limitOptions = (values: string, parse: (text: string) => GivenLimit) => [
  { flags: `--requests-per-minute ${values}`, description: 'requests per minute, across all processes', parse },
  { flags: `--streams ${values}`, description: 'open event streams per process', parse },
];

const orNull = (given: GivenLimit): number | null => (given === 'default' ? null : given);

/** Returns the fields for the options that are given. */
const limitFields = ({ requestsPerMinute, streams }: LimitOptions) => ({
  ...(requestsPerMinute === undefined ? {} : { requestsPerMinute: orNull(requestsPerMinute) }),
  ...(streams === undefined ? {} : { maxStreams: orNull(streams) }),
});

type CreateOptions = LimitOptions & {
  user?: string;
  service?: string;
  operator?: true;
  agent?: string[];
  attribution?: true;
  name: string;
  expires?: string;
};

const create: CommandSpec<[], CreateOptions> = {
  usage: 'create',
  description: 'Create a token. Prints its secret to standard output, once; the secret is not stored.',
  options: [
    { flags: '--user <person>', description: 'token of this person' },
    { flags: '--service <org>', description: 'token of a service of this organization; needs --agent' },
    { flags: '--operator', description: 'token of an operator: it allows everything that spool can do' },
    { flags: '--agent <agent>', description: 'Agent that the service may call; repeatable', many: true },
    { flags: '--attribution', description: 'the service may create Threads on behalf of people' },
    { flags: '--name <name>', description: 'what the token is for', required: true },
    {
      flags: '--expires <when>',
      description: 'a date, or time from now: 30d, 12h; default: never',
      parse: parseExpiry,
    },
    ...limitOptions('<count>', parseLimit),
  ],
  examples: [
    ['token create --user "Jo Doe" --name laptop --expires 90d'],
    ['token create --service Acme --agent echo --agent helper --name ci'],
    ['token create --service Acme --agent echo --name crm --requests-per-minute 20000'],
    ['token create --operator --name first --local', 'the first one: --local needs no token'],
  ],
  async run(session, _, options) {
    const body = await newToken(session, options);
    await printSecret(session, 'Created', await session.call('mintToken', { body }));
  },
};

type NewToken = NonNullable<CallOf<'mintToken'>['body']>;

async function newToken(session: Session, options: CreateOptions): Promise<NewToken> {
  const { user, service, operator, agent = [], attribution, name, expires } = options;
  if ([user, service, operator].filter((kind) => kind !== undefined).length !== 1) {
    throw new CommandError('usage', 'Pass exactly one of --user, --service and --operator.');
  }
  if ((service === undefined) !== (agent.length === 0) || (service === undefined && attribution)) {
    throw new CommandError(
      'usage',
      '--service needs at least one --agent; --agent and --attribution work only with --service.',
    );
  }
  if (operator && options.streams !== undefined) {
    throw new CommandError('usage', 'An operator token cannot open streams; remove --streams.');
  }
  const rest = { name, expiresAt: expires, ...limitFields(options) };
  if (user !== undefined) return { kind: 'person', personId: await personId(session, user), ...rest };
  if (service === undefined) return { kind: 'operator', ...rest };
  const organization = await organizationId(session, service);
  const agentIds = await findAgents(session, agent, organization);
  return { kind: 'service', organizationId: organization, agentIds, allowAttribution: attribution ?? false, ...rest };
}

async function findAgents(session: Session, given: readonly string[], organization?: string): Promise<string[]> {
  const ids: string[] = [];
  for (const each of given) ids.push(await agentId(session, each, organization));
  return ids;
}

/** For `TOKEN=$(spool token create …)`: nothing but the secret on standard output. */
async function printSecret(session: Session, done: 'Created' | 'Rotated', minted: MintedTokenAnswer): Promise<void> {
  const { id, name, kind, expiresAt, oldSecretUntil } = minted.token;
  const expiry = expiresAt === null ? '' : `, until ${expiresAt}`;
  const old =
    done === 'Created'
      ? ''
      : oldSecretUntil === null
        ? ' The old secret no longer works.'
        : ` The old secret works until ${oldSecretUntil}.`;
  if (!session.json)
    session.note(`${done} ${kind} token ${id} (${name})${expiry}.${old} Standard output has its secret, only once.`);
  await session.print(minted, minted.secret);
}

type ListOptions = Paging & { kind?: string; status?: string; user?: string; org?: string; agent?: string };

const list: CommandSpec<[], ListOptions> = {
  usage: 'list',
  description: 'List tokens, newest first; never their secrets.',
  options: [
    { flags: '--kind <kind>', description: 'only these', choices: ['person', 'service', 'operator'] },
    { flags: '--status <status>', description: 'only these', choices: ['active', 'expired', 'revoked'] },
    { flags: '--user <person>', description: 'only this person’s' },
    { flags: '--org <org>', description: 'only this organization’s service tokens' },
    { flags: '--agent <agent>', description: 'only service tokens that may call it' },
    ...PAGING,
  ],
  examples: [['token list --status active'], ['token list --user "Jo Doe" --json'], ['token list --kind operator']],
  async run(session, _, { kind, status, user, org, agent, ...paging }) {
    const organization = await optional(organizationId, session, org);
    const filter = {
      kind: kind as TokenRecord['kind'] | undefined,
      status: status as TokenRecord['status'] | undefined,
      personId: await optional(personId, session, user),
      organizationId: organization,
      agentId: agent === undefined ? undefined : await agentId(session, agent, organization),
    };
    await session.printPages(paging, columns, async (page) => {
      const { tokens, nextCursor } = await session.call('listTokens', { query: { ...page, ...filter } });
      return { rows: tokens, next: nextCursor };
    });
  },
};

const show: CommandSpec<[string]> = {
  usage: 'show <token>',
  description: 'Show a token.',
  examples: [['token show laptop']],
  async run(session, [given]) {
    const params = { tokenId: await tokenId(session, given) };
    const { token } = await session.call('getToken', { params });
    await session.print(token, tokenFields(token));
  },
};

const revoke: CommandSpec<[string]> = {
  usage: 'revoke <token>',
  description: 'Revoke a token permanently. Within 5 s, every pod rejects it and ends its streams.',
  examples: [['token revoke laptop'], ['token revoke 01JD0000000000000000000000 --yes', 'in a script']],
  asks: ([given]) => `Revoke token ${given} permanently?`,
  async run(session, [given]) {
    const params = { tokenId: await tokenId(session, given) };
    const { token } = await session.call('revokeToken', { params });
    await session.print(token, tokenFields(token));
  },
};

const HOUR_S = 3_600;

const endsOlder = (until: string): string =>
  `The secret before the last rotation works until ${until}. It stops working now, because a token has one old secret. Rotate?`;

const rotate: CommandSpec<[string], Options & { grace?: number; now?: true }> = {
  usage: 'rotate <token>',
  description:
    'Replace the secret of a token and print the new one. The old one works for another hour; with --now, it stops working immediately.' +
    ' Asks first if the secret before the last rotation still works, because it stops working.',
  options: [
    {
      flags: '--grace <duration>',
      description: 'how long the old secret keeps working, at most 30d; default 1h',
      parse: parseDuration,
    },
    { flags: '--now', description: 'the old secret stops working immediately' },
  ],
  examples: [
    ['token rotate ci', 'leaves an hour to deploy the new secret'],
    ['token rotate ci --grace 7d'],
    ['token rotate ci --now --yes', 'if the old secret leaked'],
  ],
  asks: ([given], { now }) => (now ? `Reject the current secret of ${given} immediately?` : null),
  async run(session, [given], { grace, now }) {
    if (now && grace !== undefined) throw new CommandError('usage', 'Give either --now or --grace.');
    const params = { tokenId: await tokenId(session, given) };
    if (!now) {
      const { oldSecretUntil } = (await session.call('getToken', { params })).token;
      if (oldSecretUntil !== null) await session.confirm(endsOlder(oldSecretUntil));
    }
    const body = { graceSeconds: now ? 0 : (grace ?? HOUR_S) };
    await printSecret(session, 'Rotated', await session.call('rotateToken', { params, body }));
  },
};

const expire: CommandSpec<[string, string]> = {
  usage: 'expire <token> <when>',
  description: 'Set when a token expires: a date, from now (30d, 12h), or never.',
  examples: [['token expire ci 30d'], ['token expire ci 2027-01-31'], ['token expire ci never']],
  async run(session, [given, when]) {
    const body = { expiresAt: parseNewExpiry(when) };
    await update(session, await tokenId(session, given), body);
  },
};

const limit: CommandSpec<[string], LimitOptions> = {
  usage: 'limit <token>',
  description: 'Set limits of a token; `default` restores one. Every pod applies them within 5 s.',
  options: limitOptions('<count>', parseNewLimit),
  examples: [
    ['token limit ci --requests-per-minute 20000 --streams 2000'],
    ['token limit ci --streams default', 'restore the default of its kind'],
  ],
  async run(session, [given], options) {
    const body = limitFields(options);
    if (Object.keys(body).length === 0) {
      throw new CommandError('usage', 'Nothing to change; pass --requests-per-minute, --streams or both.');
    }
    await update(session, await tokenId(session, given), body);
  },
};

type AgentsOptions = Options & { attribution?: true };

/** What a service token may do more, or no longer. */
const permission = (usage: string, description: string, isAllowed: boolean): CommandSpec<string[], AgentsOptions> => ({
  usage: `${usage} <token> [agents...]`,
  description,
  options: [{ flags: '--attribution', description: 'creating Threads on behalf of people' }],
  examples: [[`token ${usage} ci echo helper`], [`token ${usage} ci --attribution`]],
  async run(session, [given = '', ...agents], { attribution }) {
    if (agents.length === 0 && !attribution)
      throw new CommandError('usage', `Nothing to ${usage}; name Agents or pass --attribution.`);
    const id = await tokenId(session, given);
    const { token } = await session.call('getToken', { params: { tokenId: id } });
    const ids = await findAgents(session, agents, token.organizationId ?? undefined);
    await update(session, id, {
      ...(attribution ? { allowAttribution: isAllowed } : {}),
      ...(isAllowed ? { addAgentIds: ids } : { removeAgentIds: ids }),
    });
  },
});

async function update(session: Session, id: string, body: NonNullable<CallOf<'updateToken'>['body']>): Promise<void> {
  const { token } = await session.call('updateToken', { params: { tokenId: id }, body });
  await session.print(token, tokenFields(token));
}

export const tokens: Group = {
  name: 'token',
  description: 'Tokens of people, services and operators. Never pass one as an argument: others can read it.',
  commands: [
    create,
    list,
    show,
    revoke,
    rotate,
    expire,
    limit,
    permission('allow', 'Let a service token call more Agents of its organization.', true),
    permission('disallow', 'Stop a service token from calling these Agents.', false),
    check(tokenFields),
  ],
};
