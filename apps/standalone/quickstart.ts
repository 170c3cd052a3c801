import { createHash, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { AdminHandlers } from '#admin';
import type { AgentManifestInput } from '#agents';
import { databaseAddress } from '#platform';
import type { NamedAgent } from '../api/start-api.ts';
import { writePrivateFile } from './private-file.ts';

/** The lines of `quickstart.env`, for the first calls of a new user. */
export interface Quickstart {
  BASE_URL: string;
  ACCESS_TOKEN: string;
  AGENT_ID: string;
  /** The agent `guide`, which has a script instead of a model. */
  GUIDE_AGENT_ID: string;
  OPERATOR_TOKEN: string;
  /** For applications that create browser tokens. May call the agents that there were when it was made. */
  SERVICE_TOKEN: string;
  /** Set if the environment names a model provider. */
  ASSISTANT_ID?: string;
}

/** The pauses between deltas: slow enough to see the stream, fast enough not to bore. */
const ECHO_PAUSE_MS = 40;
const GUIDE_PAUSE_MS = 20;

/** Long enough to see that a failed step is repeated, short enough not to bore. */
const RETRIES_BRIEFLY = { providerRetryMs: 3_000 };

const GUIDE: AgentManifestInput = {
  name: 'guide',
  description: 'A scripted guide to Spool, without a model. Ask how Spool works, or type “show me”, “error” or “long”.',
  harness: { name: 'guide', pauseMs: GUIDE_PAUSE_MS },
  limits: RETRIES_BRIEFLY,
};

/**
 * Returns the file with the tokens of a database: `quickstart.env` for the embedded one (no URL). Every other database has its own
 * file, because a start must not overwrite the only copy of another database's tokens.
 */
export function quickstartFile(dataDir: string, databaseUrl: string | undefined): string {
  if (databaseUrl === undefined) return join(dataDir, 'quickstart.env');
  const { server, database } = databaseAddress(databaseUrl);
  const hash = createHash('sha256').update(`${server}/${database}`).digest('hex').slice(0, 8);
  return join(dataDir, `quickstart-${database.replace(/[^\w-]/g, '')}-${hash}.env`);
}

/** Returns the keys of browser tokens. Keeps them in the data directory, so that tokens stay valid after a restart. */
export async function quickstartKeys(dataDir: string): Promise<string> {
  const file = join(dataDir, 'browser-token-keys');
  const kept = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (kept !== '') return kept;
  const made = `quickstart:${randomBytes(32).toString('base64')}`;
  await writePrivateFile(file, `${made}\n`);
  return made;
}

/**
 * Creates an organization, a person and a published `echo` agent once per database, and tokens in place of those that are lost,
 * revoked, expired or rotated. Tokens are stored as hashes, so only the file has them. Only its owner can read it. Applies the
 * manifests of the guide and the assistant at each start.
 */
export async function prepareQuickstart(
  { pool, handlers }: { pool: Pool; handlers: AdminHandlers },
  { file, baseUrl, assistant }: { file: string; baseUrl: string; assistant: AgentManifestInput | null },
): Promise<Quickstart> {
  const known = await readQuickstart(file);
  const kept = known !== null && (await findAgent(pool, known.AGENT_ID)) ? known : await seed(handlers);
  const GUIDE_AGENT_ID = await publish(pool, handlers, kept, GUIDE);
  const ASSISTANT_ID = assistant && (await publish(pool, handlers, kept, assistant));
  const agentIds = [kept.AGENT_ID, GUIDE_AGENT_ID, ...(ASSISTANT_ID ? [ASSISTANT_ID] : [])];
  const own = { ...(await usableTokens(pool, handlers, kept, agentIds)), GUIDE_AGENT_ID, BASE_URL: baseUrl };
  const quickstart = { ...kept, ...own, ...(ASSISTANT_ID ? { ASSISTANT_ID } : {}) };
  const lines = Object.entries(quickstart).map(([name, value]) => `${name}=${value}\n`);
  await writePrivateFile(file, lines.join(''));
  return quickstart;
}

/**
 * Creates the records through the operations of operators, so that the audit log contains them. Reuses the organization and person
 * of an earlier start, because the data directory may have been deleted without the database.
 */
async function seed(handlers: AdminHandlers): Promise<Quickstart> {
  const { organizations } = await handlers.listOrganizations(asked({ name: 'Quickstart', limit: 1 }), context);
  const organizationId =
    organizations[0]?.id ?? (await handlers.createOrganization(given({ name: 'Quickstart' }), context)).organization.id;
  const ownerPersonId = await findYou(handlers, organizationId);
  const manifest = {
    name: 'echo',
    description: 'Repeats your message, and shows on demand what a Run can do.',
    harness: { name: 'echo', pauseMs: ECHO_PAUSE_MS, allowCrash: true },
    limits: RETRIES_BRIEFLY,
  };
  const wanted = { organizationId, ownerPersonId, manifests: [manifest], publish: true, dryRun: false };
  const { agents } = await handlers.applyManifests(given(wanted), context);
  const tokens = { ACCESS_TOKEN: '', OPERATOR_TOKEN: '', SERVICE_TOKEN: '' };
  return { BASE_URL: '', AGENT_ID: agents[0]?.agentId ?? '', GUIDE_AGENT_ID: '', ...tokens };
}

type TokenBody = Parameters<AdminHandlers['mintToken']>[0]['body'];

/** Returns the tokens that work, and new ones in place of the others. */
async function usableTokens(pool: Pool, handlers: AdminHandlers, kept: Quickstart, agentIds: string[]) {
  const { organizationId } = (await findAgent(pool, kept.AGENT_ID))!;
  const usable = async (secret: string, bodyOf: () => TokenBody | Promise<TokenBody>): Promise<string> =>
    (await isUsable(pool, secret)) ? secret : (await handlers.mintToken(given(await bodyOf()), context)).secret;
  const name = 'quickstart';
  const service = { kind: 'service', organizationId, agentIds, allowAttribution: false, name } as const;
  return {
    ACCESS_TOKEN: await usable(kept.ACCESS_TOKEN, async () => {
      const personId = await findYou(handlers, organizationId);
      return { kind: 'person', personId, name };
    }),
    OPERATOR_TOKEN: await usable(kept.OPERATOR_TOKEN, () => ({ kind: 'operator', name })),
    SERVICE_TOKEN: await usable(kept.SERVICE_TOKEN, () => service),
  };
}

/** Returns whether it is the current secret of an active token. An old secret stops working soon. */
async function isUsable(pool: Pool, secret: string): Promise<boolean> {
  const { rowCount } = await pool.query(
    'select from tokens where hash = $1 and revoked_at is null and (expires_at is null or expires_at > now())',
    [createHash('sha256').update(secret).digest()],
  );
  return rowCount === 1;
}

/** Returns the person of an earlier start, or a new one. */
async function findYou(handlers: AdminHandlers, organizationId: string): Promise<string> {
  const { people } = await handlers.listPeople(asked({ name: 'You', organizationId, limit: 1 }), context);
  const you = given({ name: 'You', organizationIds: [organizationId] });
  return (people[0] ?? (await handlers.createPerson(you, context)).person).id;
}

const NEVER = new AbortController().signal;
const context = {
  actor: { kind: 'local', id: 'npm start', name: 'quickstart' },
  holder: null,
  signal: NEVER,
} as const;
const given = <Body>(body: Body) => ({ params: {}, query: {}, body });
const asked = <Query>(query: Query) => ({ params: {}, query, body: null });

/** Publishes an agent with the organization and owner of the echo agent. */
async function publish(
  pool: Pool,
  handlers: AdminHandlers,
  { AGENT_ID }: Quickstart,
  manifest: AgentManifestInput,
): Promise<string> {
  const { organizationId, ownerPersonId } = (await findAgent(pool, AGENT_ID))!;
  const wanted = { organizationId, ownerPersonId, manifests: [manifest], publish: true, dryRun: false };
  const { agents } = await handlers.applyManifests(given(wanted), context);
  return agents[0]?.agentId ?? '';
}

/** Finds an agent, even a deleted one: a deleted echo agent is not created again, and the tokens stay valid. */
async function findAgent(
  pool: Pool,
  agentId: string,
): Promise<{ organizationId: string; ownerPersonId: string } | null> {
  const { rows } = await pool.query<{ organizationId: string; ownerPersonId: string }>(
    'select organization_id as "organizationId", owner_person_id as "ownerPersonId" from agents where id = $1',
    [agentId],
  );
  return rows[0] ?? null;
}

/** Returns the agents of the quickstart that can be used, for the start page. */
export async function usableAgents(pool: Pool, quickstart: Quickstart): Promise<NamedAgent[]> {
  const { AGENT_ID, GUIDE_AGENT_ID, ASSISTANT_ID } = quickstart;
  const { rows } = await pool.query<NamedAgent>(
    `select id, name, description from agents
     where id = any($1) and published and api_enabled and deleted_at is null order by name`,
    [[AGENT_ID, GUIDE_AGENT_ID, ASSISTANT_ID ?? null]],
  );
  return rows;
}

async function readQuickstart(file: string): Promise<Quickstart | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const valueOf = (name: keyof Quickstart): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  const [BASE_URL, ACCESS_TOKEN] = [valueOf('BASE_URL'), valueOf('ACCESS_TOKEN')];
  const [AGENT_ID, OPERATOR_TOKEN] = [valueOf('AGENT_ID'), valueOf('OPERATOR_TOKEN')];
  if (!BASE_URL || !ACCESS_TOKEN || !AGENT_ID || !OPERATOR_TOKEN) return null;
  const [GUIDE_AGENT_ID, SERVICE_TOKEN] = [valueOf('GUIDE_AGENT_ID'), valueOf('SERVICE_TOKEN')];
  return { BASE_URL, ACCESS_TOKEN, AGENT_ID, GUIDE_AGENT_ID, OPERATOR_TOKEN, SERVICE_TOKEN };
}
