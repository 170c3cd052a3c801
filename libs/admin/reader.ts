import type { AgentManifest } from '#agents';
import type {
  AgentVersionRecord,
  AuditEntry,
  LiveProblem,
  ManagedAgent,
  ManagedRun,
  ManagedThread,
  OrganizationRecord,
  PersonRecord,
  TokenRecord,
} from '#contract';
import { parseUlid, remedyOf, summarizeCause, type FailureCause } from '#domain';
import { namedStatement, rethrowUnavailable, type Queryable } from '#platform';
import type { AttemptCause } from '#projections';
import { firstRunIdSince } from './run-ids.ts';

/**
 * Returns the text of a statement without its name, so that PostgreSQL plans it for the given values. A generic plan would read
 * whole tables to find one row.
 */
const sql = (fileName: string): string => namedStatement(`${import.meta.dirname}/queries`, fileName).text;

const ORGANIZATIONS = sql('organizations.sql');
const PEOPLE = sql('people.sql');
const TOKENS = sql('tokens.sql');
const AGENTS = sql('agents.sql');
const VERSIONS = sql('versions.sql');
const THREADS = sql('threads.sql');
const SEARCHED_THREADS = sql('search-threads.sql');
const RUNS = sql('runs.sql');
const RUN_CAUSES = sql('run-causes.sql');
const CIRCUIT_CAUSES = sql('circuit-causes.sql');
const ERROR_CODES = sql('error-codes.sql');
const RECENT_USERS = sql('recent-users.sql');
const RECENT_REFERENCES = sql('recent-references.sql');
const AUDIT = sql('audit.sql');

/** A stored organization. Omits the limits in force, because they also depend on settings. */
export type OrganizationRow = Omit<OrganizationRecord, 'files'> & {
  files: Omit<OrganizationRecord['files'], 'limits'>;
};

interface PageWanted {
  limit?: number;
  /** The last id of the previous page. */
  cursor?: string | undefined;
}

type Filter = string | undefined;

/** Omits the limits in force, because they also depend on settings. */
export type TokenRow = Omit<TokenRecord, 'limits'>;

export interface TokensWanted extends PageWanted {
  id?: Filter;
  name?: Filter;
  secretHash?: Buffer;
  kind?: Filter;
  status?: Filter;
  personId?: Filter;
  organizationId?: Filter;
  agentId?: Filter;
}

export interface ThreadsWanted extends PageWanted {
  id?: Filter;
  organizationId?: Filter;
  agentId?: Filter;
  ownerPersonId?: Filter;
  ownerTokenId?: Filter;
  userId?: Filter;
  externalRef?: Filter;
  search?: Filter;
  status?: Filter;
  archived?: boolean | undefined;
}

export interface RunsWanted extends PageWanted {
  id?: Filter;
  threadId?: Filter;
  /** Selects only Runs that have not ended. */
  live?: boolean;
  organizationId?: Filter;
  agentId?: Filter;
  status?: Filter;
  errorCode?: Filter;
  /** The summary of the cause. */
  cause?: Filter;
  since?: Filter;
  userId?: Filter;
  externalRef?: Filter;
  endedSince?: Filter;
  mayBeRetried?: boolean | undefined;
  problem?: LiveProblem | undefined;
}

export interface AuditWanted extends PageWanted {
  actorId?: Filter;
  action?: Filter;
  targetId?: Filter;
  organizationId?: Filter;
  since?: Filter;
  sessions?: boolean | undefined;
}

/** Reads pages of records for operators, on a pool or in a transaction. Newest first. Throws DatabaseUnavailable. */
export class AdminReader {
  constructor(private readonly database: Queryable) {}

  organizations({ id, name, cursor, limit = 1 }: PageWanted & { id?: Filter; name?: Filter }) {
    return this.read<OrganizationRow>(ORGANIZATIONS, [id, name, cursor, limit]);
  }

  people(wanted: PageWanted & { id?: Filter; name?: Filter; organizationId?: Filter }) {
    const { id, name, organizationId, cursor, limit = 1 } = wanted;
    return this.read<PersonRecord>(PEOPLE, [id, name, organizationId, cursor, limit]);
  }

  tokens(wanted: TokensWanted) {
    const { id, secretHash, kind, status, personId, organizationId, agentId, name, cursor, limit = 1 } = wanted;
    const values = [id, secretHash, kind, status, personId, organizationId, agentId, cursor, limit, name];
    return this.read<TokenRow>(TOKENS, values);
  }

  agents(wanted: PageWanted & { id?: Filter; organizationId?: Filter; name?: Filter; deleted?: boolean | undefined }) {
    const { id, organizationId, name, deleted, cursor, limit = 1 } = wanted;
    return this.read<ManagedAgent>(AGENTS, [id, organizationId, name, deleted, cursor, limit]);
  }

  /** Reads versions without their manifests, which would make the size of a page unbounded. */
  async versions(agentId: string, { before, limit }: { before?: number | undefined; limit: number }) {
    type Row = AgentVersionRecord & { manifest: null };
    const rows = await this.read<Row>(VERSIONS, [agentId, null, before, limit, false]);
    return rows.map(({ manifest: _, ...version }) => version);
  }

  /** Reads the given or the newest version, with its manifest. */
  async version(agentId: string, version?: number) {
    type Row = AgentVersionRecord & { manifest: AgentManifest };
    const [row] = await this.read<Row>(VERSIONS, [agentId, version, null, 1, true]);
    if (row === undefined) return null;
    const { manifest, ...rest } = row;
    return { version: rest, manifest };
  }

  threads(wanted: ThreadsWanted) {
    const { id, organizationId, agentId, ownerPersonId, ownerTokenId, userId, status, archived } = wanted;
    const { externalRef, search, cursor, limit = 1 } = wanted;
    const owners = [ownerPersonId, ownerTokenId];
    const values = [id, organizationId, agentId, ...owners, userId, status, archived, cursor, limit, externalRef];
    if (search === undefined) return this.read<ManagedThread>(THREADS, values);
    return this.read<ManagedThread>(SEARCHED_THREADS, [...values, search, parseUlid(search)]);
  }

  async runs({ id, threadId, live, organizationId, agentId, status, ...wanted }: RunsWanted): Promise<ManagedRun[]> {
    const {
      errorCode,
      cause,
      since,
      userId,
      externalRef,
      endedSince,
      mayBeRetried,
      problem,
      cursor,
      limit = 1,
    } = wanted;
    const created = [since, since === undefined ? null : firstRunIdSince(since)];
    const causes =
      cause === undefined
        ? null
        : await this.causesOf(cause, problem === 'provider_failing' ? CIRCUIT_CAUSES : RUN_CAUSES);
    if (causes?.length === 0) return [];
    const whose = [id, threadId, organizationId, agentId, status, cursor, live, errorCode];
    const values = [...whose, ...created, limit, userId, causes, externalRef, endedSince, mayBeRetried, problem];
    return (await this.read<RunRow>(RUNS, values)).map(toRun);
  }

  audit({ actorId, action, targetId, organizationId, since, sessions, cursor, limit = 1 }: AuditWanted) {
    return this.read<AuditEntry>(AUDIT, [actorId, action, targetId, organizationId, since, cursor, limit, sessions]);
  }

  /** Returns at most `limit` values of a filter for a text that is typed. */
  async suggestions(of: 'errorCode' | 'cause' | 'userId' | 'externalRef', text: string, limit: number) {
    if (of === 'userId' || of === 'externalRef') {
      const statement = of === 'userId' ? RECENT_USERS : RECENT_REFERENCES;
      const rows = await this.read<{ value: string }>(statement, [text, limit]);
      return rows.map(({ value }) => value);
    }
    const all =
      of === 'cause'
        ? (await this.read<{ cause: FailureCause }>(RUN_CAUSES, [])).map(({ cause }) => summarizeCause(cause))
        : (await this.read<{ value: string }>(ERROR_CODES, [])).map(({ value }) => value);
    const wanted = text.toLowerCase();
    return [...new Set(all)]
      .filter((value) => value.toLowerCase().includes(wanted))
      .sort()
      .slice(0, limit);
  }

  /** Returns the stored causes with this summary, as JSON. */
  private async causesOf(summary: string, statement: string): Promise<string[]> {
    const rows = await this.read<{ cause: FailureCause }>(statement, []);
    return rows.flatMap(({ cause }) => (summarizeCause(cause) === summary ? [JSON.stringify(cause)] : []));
  }

  private async read<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
    const given = values.map((value) => value ?? null);
    const { rows } = await this.database.query<Row>({ text, values: given }).catch(rethrowUnavailable);
    return rows;
  }
}

type Work = NonNullable<ManagedRun['work']>;
type RunRow = Omit<ManagedRun, 'work' | 'cause' | 'remedy'> & { cause: AttemptCause | null } & ({ state: null } | Work);

function toRun(row: RunRow): ManagedRun {
  const { id, threadId, threadTitle, organizationId, organizationName, agentId, agentName, userId, status, trigger } =
    row;
  const { createdAt, startedAt, completedAt, updatedAt, error, mayBeRetried, newerRunId } = row;
  const cause = row.cause && { summary: summarizeCause(row.cause), ...row.cause };
  const whose = { threadTitle, organizationId, organizationName, agentId, agentName, userId };
  const when = { createdAt, startedAt, completedAt, updatedAt };
  const remedy = error === null ? null : remedyOf(error.code);
  const run = { id, threadId, ...whose, status, trigger, ...when, error, cause, remedy, mayBeRetried, newerRunId };
  if (row.state === null) return { ...run, work: null };
  const { state, limitedBy, dispatch, attempt, holder, dueAt, since } = row;
  return { ...run, work: { state, limitedBy, dispatch, attempt, holder, dueAt, since } };
}

/** The target size of a page of large records, in bytes. The last record can exceed it by its own size. */
export const PAGE_BYTES = 2 * 1024 * 1024;

/** Returns a page of at most `limit` rows. Expects one row more if there is another page. */
export function pageOf<Row extends { id: string }>(
  rows: Row[],
  limit: number,
): { page: Row[]; nextCursor: string | null } {
  const page = rows.slice(0, limit);
  return { page, nextCursor: rows.length > limit ? (page.at(-1)?.id ?? null) : null };
}
