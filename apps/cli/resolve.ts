import type { ManagedAgent, OrganizationRecord, PersonRecord, TokenRecord } from '#contract';
import { CommandError } from './exit-codes.ts';
import type { Session } from './session.ts';
import { showInLine } from './text.ts';

/** In either case, as the API takes them. A name that looks like an id can be used by its id only. */
const ULID = /^[0-7][0-9A-HJKMNP-TV-Z]{25}$/i;

/** The id of what was named by id or by its exact name. All of these throw CommandError. */
export async function organizationId(session: Session, given: string): Promise<string> {
  if (ULID.test(given)) return given.toUpperCase();
  const { organizations } = await session.call('listOrganizations', { query: { name: given } });
  return theOne(['organization', 'organizations'], given, organizations);
}

export async function personId(session: Session, given: string): Promise<string> {
  if (ULID.test(given)) return given.toUpperCase();
  const { people } = await session.call('listPeople', { query: { name: given } });
  return theOne(['person', 'people'], given, people);
}

/** Names of Agents are unique within an organization, which may be given. */
export async function agentId(session: Session, given: string, organization?: string): Promise<string> {
  if (ULID.test(given)) return given.toUpperCase();
  const { agents } = await session.call('listAgents', { query: { name: given, organizationId: organization } });
  return theOne(['Agent', 'Agents'], given, agents);
}

/** A revoked token does not stand in the way of another one with its name. */
export async function tokenId(session: Session, given: string): Promise<string> {
  if (ULID.test(given)) return given.toUpperCase();
  const { tokens } = await session.call('listTokens', { query: { name: given } });
  const usable = tokens.filter(({ status }) => status !== 'revoked');
  return theOne(['token', 'tokens'], given, usable.length > 0 ? usable : tokens);
}

export async function optional<T>(
  find: (session: Session, given: string) => Promise<T>,
  session: Session,
  given: string | undefined,
): Promise<T | undefined> {
  return given === undefined ? undefined : find(session, given);
}

type Named = OrganizationRecord | PersonRecord | ManagedAgent | TokenRecord;

function theOne([one, many]: [one: string, many: string], given: string, found: readonly Named[]): string {
  const name = showInLine(given);
  if (found.length === 0) throw new CommandError('notFound', `No ${one} is named "${name}".`);
  if (found.length === 1) return found[0]!.id;
  const ofOrganizations = found.some((each) => 'description' in each);
  const ids = found.map((each) =>
    'description' in each
      ? `${each.id} (organization ${each.organizationId})`
      : `${each.id} (${'kind' in each ? `${each.kind} token, ` : ''}created ${each.createdAt})`,
  );
  const how = ofOrganizations ? 'pass --org or an id' : 'use an id';
  throw new CommandError('usage', `${found.length} ${many} are named "${name}"; ${how}:\n  ${ids.join('\n  ')}`);
}
