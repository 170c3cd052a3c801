import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Pool } from 'pg';
import type { AdminHandlers } from '#admin';
import type { AgentManifestInput } from '#agents';
import { databaseAddress } from '#platform';
import { writePrivateFile } from './private-file.ts';

/** What a newcomer needs for the first call; the lines of `quickstart.env`. */
export interface Quickstart {
  BASE_URL: string;
  ACCESS_TOKEN: string;
  AGENT_ID: string;
  OPERATOR_TOKEN: string;
  /** Of the assistant, where the environment names a model provider. */
  ASSISTANT_ID?: string;
}

/** Pieces come slowly enough to be seen streaming, and fast enough not to bore. */
const ECHO_PAUSE_MS = 40;

/**
 * Where a database's tokens are kept: `quickstart.env` for the embedded one (no URL). Each other has a file of its own, named
 * after it: a start on one must not take the tokens of another away, which are nowhere else.
 */
export function quickstartFile(dataDir: string, databaseUrl: string | undefined): string {
  if (databaseUrl === undefined) return join(dataDir, 'quickstart.env');
  const { server, database } = databaseAddress(databaseUrl);
  const hash = createHash('sha256').update(`${server}/${database}`).digest('hex').slice(0, 8);
  return join(dataDir, `quickstart-${database.replace(/[^\w-]/g, '')}-${hash}.env`);
}

/**
 * Makes an organization, a person, tokens and a published `echo` agent, once a database, and writes them to the file,
 * readable by its owner only. Tokens are stored as hashes, so where the file is lost, new ones are made. The assistant, where
 * there is one to be, is made as its manifest says at each start.
 */
export async function prepareQuickstart(
  { pool, handlers }: { pool: Pool; handlers: AdminHandlers },
  { file, baseUrl, assistant }: { file: string; baseUrl: string; assistant: AgentManifestInput | null },
): Promise<Quickstart> {
  const known = await readQuickstart(file);
  const kept = known !== null && (await findAgent(pool, known.AGENT_ID)) ? known : await seed(handlers);
  const ASSISTANT_ID = assistant && (await publishAssistant(pool, handlers, kept, assistant));
  const quickstart = { ...kept, BASE_URL: baseUrl, ...(ASSISTANT_ID ? { ASSISTANT_ID } : {}) };
  const lines = Object.entries(quickstart).map(([name, value]) => `${name}=${value}\n`);
  await writePrivateFile(file, lines.join(''));
  return quickstart;
}

/**
 * Creates what a newcomer needs by the operations of operators, so that the audit log has it. Uses an organization and a person
 * that an earlier start made: the data directory may have been deleted, and the data of PostgreSQL be elsewhere.
 */
async function seed(handlers: AdminHandlers): Promise<Quickstart> {
  const { organizations } = await handlers.listOrganizations(asked({ name: 'Quickstart', limit: 1 }), context);
  const organizationId =
    organizations[0]?.id ?? (await handlers.createOrganization(given({ name: 'Quickstart' }), context)).organization.id;
  const { people } = await handlers.listPeople(asked({ name: 'You', organizationId, limit: 1 }), context);
  const you = given({ name: 'You', organizationIds: [organizationId] });
  const person = people[0] ?? (await handlers.createPerson(you, context)).person;
  const manifest = {
    name: 'echo',
    description: 'Repeats your message, and shows on demand what a Run can do.',
    harness: { name: 'echo', pauseMs: ECHO_PAUSE_MS, allowCrash: true },
  };
  const wanted = { organizationId, ownerPersonId: person.id, manifests: [manifest], publish: true, dryRun: false };
  const { agents } = await handlers.applyManifests(given(wanted), context);
  const name = 'quickstart';
  const forPerson = await handlers.mintToken(given({ kind: 'person', personId: person.id, name }), context);
  const forOperator = await handlers.mintToken(given({ kind: 'operator', name }), context);
  return {
    BASE_URL: '',
    ACCESS_TOKEN: forPerson.secret,
    AGENT_ID: agents[0]?.agentId ?? '',
    OPERATOR_TOKEN: forOperator.secret,
  };
}

const NEVER = new AbortController().signal;
const context = { actor: { kind: 'local', id: 'npm start', name: 'quickstart' }, signal: NEVER } as const;
const given = <Body>(body: Body) => ({ params: {}, query: {}, body });
const asked = <Query>(query: Query) => ({ params: {}, query, body: null });

/** Beside the echo agent, and of the same owner. */
async function publishAssistant(
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

/** Also a deleted one: whoever has deleted it wants no other, and the tokens are as they were. */
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

async function readQuickstart(file: string): Promise<Quickstart | null> {
  const text = await readFile(file, 'utf8').catch(() => '');
  const valueOf = (name: keyof Quickstart): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1] ?? '';
  const [BASE_URL, ACCESS_TOKEN] = [valueOf('BASE_URL'), valueOf('ACCESS_TOKEN')];
  const [AGENT_ID, OPERATOR_TOKEN] = [valueOf('AGENT_ID'), valueOf('OPERATOR_TOKEN')];
  if (!BASE_URL || !ACCESS_TOKEN || !AGENT_ID || !OPERATOR_TOKEN) return null;
  return { BASE_URL, ACCESS_TOKEN, AGENT_ID, OPERATOR_TOKEN };
}
