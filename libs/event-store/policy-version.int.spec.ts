import type { Client } from 'pg';
import { createTestDatabase, eventually, type TestDatabase } from '#testing';
import { connect } from './store.testing.ts';

// Real: PostgreSQL, the triggers of migration 0003, and SQL as an operator would send it.

let database: TestDatabase;
let client: Client;
let other: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  [client, other] = [await connect(database.ownerUrl), await connect(database.ownerUrl)];
  await client.query(`
    insert into organizations (id, name) values ('O', 'Acme');
    insert into people (id, name) values ('P', 'Ada'), ('Q', 'Bob'), ('R', 'Eve');
    insert into memberships values ('O', 'P');
    insert into agents (id, organization_id, name, kind) values ('A', 'O', 'a', 'cattle'), ('B', 'O', 'b', 'cattle');
    insert into agent_people values ('A', 'P');
    insert into tokens (id, kind, hash, name, person_id) values ('T', 'person', 't', 't', 'P'), ('U', 'person', 'u', 'u', 'P');
    insert into tokens (id, kind, hash, name, organization_id) values ('S', 'service', 's', 's', 'O');
    insert into token_agents values ('S', 'A');
    insert into tokens (id, kind, hash, name) values ('G', 'operator', 'g', 'g');
    insert into operator_sessions (hash, token_id, token_hash, expires_at) values
      ('early', 'G', 'g', now() + interval '1 hour'), ('old', 'G', 'g', now());
    insert into operator_sessions (hash, token_id, token_hash, last_used_at, expires_at) values
      ('unused', 'G', 'g', now() - interval '1 hour', now() + interval '1 hour')`);
});

afterAll(async () => {
  await Promise.all([client.end(), other.end()]);
  await database.drop();
});

async function version(): Promise<number> {
  const { rows } = await client.query<{ version: string }>('select version from policy_version');
  expect(rows).toHaveLength(1);
  return Number(rows[0]!.version);
}

/** Runs the statements in one transaction. Returns by how much they raise the version. */
async function raisedBy(...statements: string[]): Promise<number> {
  const before = await version();
  await client.query(statements.join('; '));
  return (await version()) - before;
}

test.each([
  ['a token is revoked', `update tokens set revoked_at = now() where id = 'T'`],
  ['a token gets another expiry', `update tokens set expires_at = now() + interval '1 day' where id = 'T'`],
  ['a token gets another hash', `update tokens set hash = 'x' where id = 'T'`],
  ['a token may attribute', `update tokens set allow_attribution = true where id = 'S'`],
  ['a token gets another person', `update tokens set person_id = 'Q' where id = 'T'`],
  ['a token is deleted', `delete from tokens where id = 'U'`],
  ['a session ends early', `delete from operator_sessions where hash = 'early'`],
  ['a person becomes a member', `insert into memberships values ('O', 'Q')`],
  ['a membership gets another person', `update memberships set person_id = 'R' where person_id = 'Q'`],
  ['a member leaves', `delete from memberships where person_id = 'R'`],
  ['a person is invited', `insert into agent_people values ('A', 'Q')`],
  ['an invitation gets another agent', `update agent_people set agent_id = 'B' where person_id = 'Q'`],
  ['an invitation is revoked', `delete from agent_people where person_id = 'Q'`],
  ['a service token gets an agent', `insert into token_agents values ('S', 'B')`],
  ['a service token loses an agent', `delete from token_agents where agent_id = 'B'`],
  ['an organization gets a limit', `update organizations set max_runs = 3 where id = 'O'`],
  ['an agent is unpublished', `update agents set published = not published where id = 'A'`],
  ['API access is switched off', `update agents set api_enabled = false where id = 'A'`],
  ['an agent gets another live version', `update agents set live_version = 7 where id = 'A'`],
  ['an agent becomes invitation-only', `update agents set access = 'invited' where id = 'A'`],
  ['an agent gets an owner', `update agents set owner_person_id = 'Q' where id = 'A'`],
  ['an agent is renamed', `update agents set name = 'other' where id = 'A'`],
  ['an agent is marked as deleted', `update agents set deleted_at = now() where id = 'A'`],
  ['the row of an agent is deleted', `delete from agents where id = 'B'`],
])('the policy version is raised when %s', async (_, statement) => {
  expect(await raisedBy(statement)).toBe(1);
});

test.each(['token_agents', 'agent_people', 'memberships'])('emptying %s raises the policy version', async (table) => {
  const before = await version();
  await client.query(`begin; truncate ${table}`);
  expect(await version()).toBe(before + 1);
  await client.query('rollback');
});

test('the policy version is raised once per transaction', async () => {
  const many = `update agents set name = name || '!'`;
  expect(await raisedBy(many, many, `update tokens set revoked_at = now()`)).toBe(1);
  expect(await raisedBy(many)).toBe(1);
});

test.each([
  ['a token is used', `update tokens set last_used_at = now()`],
  ['an update changes nothing', `update agents set name = name; update tokens set revoked_at = revoked_at`],
  ['an agent is created', `insert into agents (id, organization_id, name, kind) values ('C', 'O', 'c', 'pet')`],
  ['a token is created', `insert into tokens (id, kind, hash, name) values ('V', 'operator', 'v', 'v')`],
  [
    'an operator signs in',
    `insert into operator_sessions values ('new', 'G', 'g', now(), now(), now() + interval '1 hour')`,
  ],
  ['a session is used', `update operator_sessions set last_used_at = now() where hash = 'old'`],
  ['ended sessions are removed', `delete from operator_sessions where hash in ('old', 'unused')`],
  ['a change is rolled back', `begin; update tokens set hash = 'y' where id = 'T'; rollback`],
])('the policy version stays the same when %s', async (_, statement) => {
  expect(await raisedBy(statement)).toBe(0);
});

test('the policy version is raised by a role whose search path and rights do not reach it', async () => {
  const before = await version();
  await client.query(`
    begin;
    create role policy_operator;
    grant select, update on agents to policy_operator;
    set local role policy_operator;
    set local search_path to '';
    update public.agents set api_enabled = not api_enabled;
    set constraints all immediate;
    reset role;
    set local search_path to public`);
  expect(await version()).toBe(before + 1);
  await client.query('rollback');
});

describe('two transactions that change agents and tokens in opposite orders', () => {
  const agent = `update agents set name = name || '?' where id = 'A'`;
  const token = `update tokens set expires_at = coalesce(expires_at, now()) + interval '1 s' where id = 'T'`;

  /** The first transaction changes the agent, and the second the token. The first then changes the token too. Both commit. */
  async function cross(mode: 'deferred' | 'immediate'): Promise<unknown[]> {
    const watcher = await connect(database.ownerUrl);
    const blocked = async (count: number): Promise<boolean> => {
      const { rows } = await watcher.query<{ count: string }>(
        `select count(*) from pg_stat_activity where datname = current_database() and cardinality(pg_blocking_pids(pid)) > 0`,
      );
      return Number(rows[0]!.count) >= count;
    };
    for (const each of [client, other]) await each.query(`begin; set constraints all ${mode}`);
    await client.query(agent);
    let isChanged = false;
    const changed = other.query(token).then(() => (isChanged = true));
    await eventually(async () => isChanged || blocked(1), { what: 'the other has changed the token, or waits' });
    const first = client.query(token).then(() => client.query('commit'));
    await eventually(() => blocked(1), { what: 'the one waits for the token' });
    const second = changed.then(() => other.query('commit'));
    const codeOf = (error: unknown) => (error as { code: string }).code;
    const outcomes = await Promise.all([first, second].map((ending) => ending.then(() => 'committed', codeOf)));
    for (const each of [client, other]) await each.query('rollback');
    await watcher.end();
    return outcomes;
  }

  test('both commit', async () => {
    const before = await version();
    expect(await cross('deferred')).toEqual(['committed', 'committed']);
    expect(await version()).toBe(before + 2);
  });

  test('would deadlock if each statement raised the version', async () => {
    expect((await cross('immediate')).toSorted()).toEqual(['40P01', 'committed']);
  });
});
