import { createHash } from 'node:crypto';
import type { AdminOperationName, AuditEntry } from '#contract';
import { AdminUnderTest, type Answer, type Given, type Sent } from './admin-under-test.testing.ts';

let admin: AdminUnderTest;
let organizationId: string;
let personId: string;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  ({ organizationId, personId } = admin.api);
});
afterAll(() => admin.stop());

const manifestOf = (name: string, more: object = {}) => ({ name, harness: { name: 'echo' }, ...more });

/** Calls an operation. Returns its answer, and its audit entries without the fields that are the same in all. */
async function audited<N extends AdminOperationName>(name: N, given: Given<N>) {
  let answer: Answer<N> | undefined;
  const entries = await admin.entriesOf(async () => void (answer = await admin.do(name, given)));
  const short = entries.map((entry): unknown[] => {
    const { action, target_id, details } = entry as unknown as Record<string, unknown>;
    return [action, target_id, details];
  });
  return { entries: short, answer: answer as Answer<N> };
}

async function newAgent(name: string): Promise<string> {
  const { agents } = await admin.do('applyManifests', { body: { organizationId, manifests: [manifestOf(name)] } });
  return agents[0]!.agentId!;
}

async function newToken(name = 'app'): Promise<{ tokenId: string; secret: string }> {
  const { token, secret } = await admin.do('mintToken', { body: { kind: 'person', personId, name } });
  return { tokenId: token.id, secret };
}

async function newRun(): Promise<{ threadId: string; runId: string }> {
  const threadId = await admin.api.newThread({ text: 'hi' });
  return { threadId, runId: (await admin.api.get(`/threads/${threadId}`)).json.run.id };
}

/** Creates a Run that waits for a person. */
async function newQuestion(): Promise<{ threadId: string; runId: string; requestId: string }> {
  const { threadId, runId } = await newRun();
  const requestId = await admin.api.ask(threadId, runId);
  return { threadId, runId, requestId };
}

it('an audit entry has the actor, the action and the time', async () => {
  const before = Date.now() - 2_000;
  const [entry] = await admin.entriesOf(() => admin.do('createOrganization', { body: { name: 'Acme & Söhne' } }));
  const { entries } = await admin.do('listAudit', { query: { limit: 1 } });
  expect(entries).toEqual([
    {
      id: entry!.id,
      occurredAt: expect.any(String) as string,
      actor: { kind: 'operator', id: admin.tokenId, name: 'Grace' },
      action: 'organization.created',
      targetId: entries[0]!.organizationId,
      organizationId: entries[0]!.organizationId,
      details: { name: 'Acme & Söhne' },
    },
  ]);
  const occurredAt = Date.parse(entries[0]!.occurredAt);
  expect(occurredAt > before && occurredAt < Date.now() + 2_000).toBe(true);
});

describe('each change has one audit entry, and a call without effect has none', () => {
  test('for organizations, people and memberships', async () => {
    const { organization } = await admin.do('createOrganization', { body: { name: 'One' } });
    const params = { organizationId: organization.id };
    const renamed = await audited('renameOrganization', { params, body: { name: 'Two' } });
    expect(renamed.entries).toEqual([['organization.renamed', organization.id, { name: 'Two', was: 'One' }]]);
    expect((await audited('renameOrganization', { params, body: { name: 'Two' } })).entries).toEqual([]);
    const limited = await audited('limitOrganization', { params, body: { runs: 3 } });
    expect(limited.answer.organization.concurrency).toEqual({ runs: 3 });
    expect(limited.entries).toEqual([['organization.limited', organization.id, { runs: 3, was: null }]]);
    expect((await audited('limitOrganization', { params, body: { runs: 3 } })).entries).toEqual([]);

    const quota = await audited('setFileQuota', { params, body: { maxCount: 9, maxBytes: 100 } });
    expect(quota.answer.organization.files).toMatchObject({ count: 0, bytes: 0, maxCount: 9, maxBytes: 100 });
    const was = { maxCount: null, maxBytes: null };
    expect(quota.entries).toEqual([
      ['organization.file_quota_set', organization.id, { maxCount: 9, maxBytes: 100, was }],
    ]);
    // Omitted fields stay.
    const again = await audited('setFileQuota', { params, body: { maxBytes: null } });
    expect(again.answer.organization.files).toMatchObject({ maxCount: 9, maxBytes: null });
    expect((await audited('setFileQuota', { params, body: {} })).entries).toEqual([]);

    const both = [organization.id, organizationId, organization.id];
    const made = await audited('createPerson', { body: { name: 'Eve', organizationIds: both } });
    const { id } = made.answer.person;
    expect(made.entries).toEqual([
      ['person.created', id, { name: 'Eve' }],
      ['member.added', id, {}],
      ['member.added', id, {}],
    ]);
    expect(made.answer.person.organizationIds).toEqual([...new Set(both)].toSorted());
    const person = await audited('renamePerson', { params: { personId: id }, body: { name: 'Eva' } });
    expect(person.entries).toEqual([['person.renamed', id, { name: 'Eva', was: 'Eve' }]]);
    expect((await audited('renamePerson', { params: { personId: id }, body: { name: 'Eva' } })).entries).toEqual([]);

    const member = { params: { ...params, personId: id } };
    expect((await audited('removeMember', member)).entries).toEqual([['member.removed', id, {}]]);
    expect((await audited('removeMember', member)).entries).toEqual([]);
    const added = { params, body: { personId: id } };
    expect((await audited('addMember', added)).entries).toEqual([['member.added', id, {}]]);
    expect((await audited('addMember', added)).entries).toEqual([]);
  });

  test('for tokens', async () => {
    const { tokenId } = await newToken();
    const params = { tokenId };
    const expiresAt = '2030-01-01T01:00:00+01:00';
    const updated = await audited('updateToken', { params, body: { name: 'other', expiresAt } });
    expect(updated.entries).toEqual([
      ['token.updated', tokenId, { name: 'other', expiresAt: '2030-01-01T00:00:00.000Z' }],
    ]);
    expect((await audited('updateToken', { params, body: { name: 'other', expiresAt } })).entries).toEqual([]);
    expect((await audited('updateToken', { params, body: {} })).entries).toEqual([]);
    const rotated = await audited('rotateToken', { params, body: { graceSeconds: 60 } });
    expect(rotated.entries).toEqual([['token.rotated', tokenId, { graceSeconds: 60 }]]);
    const revoked = await audited('revokeToken', { params });
    expect(revoked.entries).toEqual([['token.revoked', tokenId, {}]]);
    const again = await audited('revokeToken', { params });
    expect([again.entries, again.answer]).toEqual([[], revoked.answer]);
  });

  test('for agents', async () => {
    const manifests = [manifestOf('audited'), manifestOf('audited too')];
    const body = { organizationId, ownerPersonId: personId, manifests, publish: true };
    const applied = await audited('applyManifests', { body });
    expect(applied.entries.map(([action]) => action)).toEqual(
      manifests.flatMap(() => ['agent.created', 'agent.version_added', 'agent.published']),
    );
    expect((await audited('applyManifests', { body })).entries).toEqual([]);
    expect(
      (await audited('applyManifests', { body: { ...body, manifests: [manifestOf('x')], dryRun: true } })).entries,
    ).toEqual([]);

    const agentId = applied.answer.agents[0]!.agentId!;
    const params = { agentId };
    expect((await audited('publishAgent', { params })).entries).toEqual([]);
    const name = 'audited';
    expect((await audited('unpublishAgent', { params })).entries).toEqual([
      ['agent.unpublished', agentId, { name, published: false }],
    ]);
    expect((await audited('unpublishAgent', { params })).entries).toEqual([]);
    const change = { access: 'invited', ownerPersonId: null } as const;
    expect((await audited('updateAgent', { params, body: { ...change, apiEnabled: true } })).entries).toEqual([
      ['agent.updated', agentId, { name, ...change }],
    ]);
    expect((await audited('updateAgent', { params, body: { ...change, apiEnabled: true } })).entries).toEqual([]);
    const invited = { params, body: { personId } };
    expect((await audited('invitePerson', invited)).entries).toEqual([['agent.invited', agentId, { personId }]]);
    expect((await audited('invitePerson', invited)).entries).toEqual([]);
    const uninvited = { params: { agentId, personId } };
    expect((await audited('uninvitePerson', uninvited)).entries).toEqual([['agent.uninvited', agentId, { personId }]]);
    expect((await audited('uninvitePerson', uninvited)).entries).toEqual([]);

    await admin.do('applyManifests', {
      body: { organizationId, manifests: [manifestOf('audited', { description: '2' })] },
    });
    expect((await audited('rollBackAgent', { params, body: {} })).entries).toEqual([
      ['agent.rolled_back', agentId, { name, version: 3, as: 1 }],
    ]);
    expect((await audited('deleteAgent', { params })).entries).toEqual([['agent.deleted', agentId, { name }]]);
  });

  test('for Threads, Runs and the queue', async () => {
    const { threadId, runId } = await newRun();
    const cancelled = await audited('cancelRun', { params: { runId } });
    expect(cancelled.entries).toEqual([['run.cancelled', runId, { threadId }]]);
    const retried = await audited('retryRun', { params: { runId } });
    expect(retried.entries).toEqual([['run.retried', runId, { threadId, newRunId: retried.answer.run.id }]]);
    await admin.do('cancelRun', { params: { runId: retried.answer.run.id } });
    const params = { threadId };
    expect((await audited('archiveThread', { params })).entries).toEqual([['thread.archived', threadId, {}]]);
    expect((await audited('archiveThread', { params })).entries).toEqual([]);
    expect((await audited('unarchiveThread', { params })).entries).toEqual([['thread.unarchived', threadId, {}]]);
    expect((await audited('unarchiveThread', { params })).entries).toEqual([]);
    expect((await audited('terminateThread', { params })).entries).toEqual([['thread.terminated', threadId, {}]]);
    expect((await audited('terminateThread', { params })).entries).toEqual([]);
    expect((await audited('deleteThread', { params })).entries).toEqual([['thread.deleted', threadId, {}]]);

    const asking = await newQuestion();
    const answer = {
      params: { threadId: asking.threadId, requestId: asking.requestId },
      body: { decision: 'reject_once' },
    } as const;
    const details = { ...answer.params, ...answer.body, toolName: 'send_note' };
    expect((await audited('answerConfirmation', answer)).entries).toEqual([
      ['run.confirmation_answered', asking.runId, details],
    ]);

    const queue = (await admin.do('getQueue')).queue.name;
    expect((await audited('pauseQueue', {})).entries).toEqual([['queue.paused', queue, {}]]);
    expect((await audited('pauseQueue', {})).entries).toEqual([]);
    expect((await audited('resumeQueue', {})).entries).toEqual([
      ['queue.resumed', queue, { pausedAt: expect.any(String) as string }],
    ]);
    expect((await audited('resumeQueue', {})).entries).toEqual([]);
    const rebuilt = await audited('rebuildProjections', { body: {} });
    expect(rebuilt.entries).toEqual([['projections.rebuilt', null, { from: null }]]);
    expect((await audited('verify', { body: {} })).entries).toEqual([]);
  });
});

test('a call that is refused with a conflict adds no audit entry and changes nothing', async () => {
  const { tokenId } = await newToken();
  await admin.do('revokeToken', { params: { tokenId } });
  const agentId = await newAgent('refusing');
  const deleted = await newAgent('deleted');
  await admin.do('deleteAgent', { params: { agentId: deleted } });
  const { threadId, runId } = await newRun();
  await admin.api.completeRun(threadId, runId);
  const asking = await newQuestion();
  const answered = await newQuestion();
  await admin.do('cancelRun', { params: { runId: answered.runId } });
  const refused: [AdminOperationName, Sent][] = [
    ['updateToken', { params: { tokenId }, body: { name: 'x' } }],
    ['rotateToken', { params: { tokenId }, body: {} }],
    ['rollBackAgent', { params: { agentId }, body: {} }],
    ['rollBackAgent', { params: { agentId }, body: { version: 1 } }],
    ...(['publishAgent', 'unpublishAgent', 'deleteAgent'] as const).map((name): [AdminOperationName, Sent] => [
      name,
      { params: { agentId: deleted } },
    ]),
    ['updateAgent', { params: { agentId: deleted }, body: { apiEnabled: false } }],
    ['rollBackAgent', { params: { agentId: deleted }, body: {} }],
    ['invitePerson', { params: { agentId: deleted }, body: { personId } }],
    ['uninvitePerson', { params: { agentId: deleted, personId } }],
    ['cancelRun', { params: { runId } }],
    ['retryRun', { params: { runId } }],
    ['archiveThread', { params: { threadId: asking.threadId } }],
    ['answerConfirmation', { params: { ...answered }, body: { decision: 'allow_once' } }],
  ];
  const before = await admin.rowCounts();
  for (const [name, sent] of refused) {
    expect([name, (await admin.refused(name, sent))[0]]).toEqual([name, 'conflict']);
  }
  expect(await admin.rowCounts()).toEqual(before);
});

test('secrets appear in no audit entry, and only in the answers of minting and rotating', async () => {
  const { tokenId, secret } = await newToken('secretive');
  const rotated = await admin.do('rotateToken', { params: { tokenId }, body: { graceSeconds: 60 } });
  const hashes = [secret, rotated.secret].map((each) => createHash('sha256').update(each).digest());
  const secrets = [
    secret,
    rotated.secret,
    ...hashes.flatMap((hash) => [hash.toString('hex'), hash.toString('base64')]),
  ];
  const params = { tokenId };
  const answers = [
    await admin.send('getToken', { params }),
    await admin.send('listTokens', {}),
    await admin.send('updateToken', { params, body: { name: 'still' } }),
    await admin.send('identifyToken', { body: { sha256: hashes[0]!.toString('hex') } }),
    await admin.send('revokeToken', { params }),
    await admin.send('listAudit', {}),
    await admin.send('runDoctor', {}),
  ];
  const { rows } = await admin.pool.query<{ text: string }>('select e::text as text from audit_entries e');
  const texts = [...answers.map(({ text }) => text), ...rows.map(({ text }) => text)];
  expect(texts.filter((text) => text.includes(tokenId)).length).toBeGreaterThan(7);
  expect(texts.filter((text) => secrets.some((each) => text.includes(each)))).toEqual([]);
});

describe('an audit entry that cannot be written', () => {
  beforeAll(() =>
    admin.pool.query(`
      create function fail_audit() returns trigger language plpgsql as $$ begin raise exception 'no room'; end $$;
      create trigger fail_audit before insert on audit_entries for each row execute function fail_audit();
      alter table audit_entries disable trigger fail_audit;
    `),
  );
  afterAll(() => admin.pool.query('drop trigger fail_audit on audit_entries'));

  /** Returns a checksum of the rows of each table, without the last use of tokens. */
  async function everything(): Promise<Record<string, string>> {
    const all: Record<string, string> = {};
    for (const table of Object.keys(await admin.rowCounts())) {
      const row = table === 'tokens' ? `to_jsonb(t) - 'last_used_at'` : 'to_jsonb(t)';
      const text = `select md5(coalesce(string_agg(r::text, ' ' order by r::text), '')) as sum from (select ${row} as r from ${table} t) rows`;
      const { rows } = await admin.pool.query<{ sum: string }>(text);
      all[table] = rows[0]!.sum;
    }
    return all;
  }

  test('rolls its change back, and prevents a change without a transaction', async () => {
    const { tokenId } = await newToken('kept');
    const agentId = await newAgent('kept');
    await admin.do('applyManifests', {
      body: { organizationId, manifests: [manifestOf('kept', { description: '2' })] },
    });
    const { threadId, runId } = await newRun();
    const ended = await newRun();
    const asking = await newQuestion();
    const archived = await admin.api.newThread();
    await admin.do('archiveThread', { params: { threadId: archived } });
    const idle = await admin.api.newThread();
    await admin.do('cancelRun', { params: { runId: ended.runId } });
    const { person } = await admin.do('createPerson', { body: { name: 'Kim' } });
    const all: [AdminOperationName, Sent][] = [
      ['createOrganization', { body: { name: 'New' } }],
      ['renameOrganization', { params: { organizationId }, body: { name: 'Other' } }],
      ['limitOrganization', { params: { organizationId }, body: { runs: 3 } }],
      ['setFileQuota', { params: { organizationId }, body: { maxCount: 3 } }],
      ['addMember', { params: { organizationId }, body: { personId: person.id } }],
      ['removeMember', { params: { organizationId, personId } }],
      ['createPerson', { body: { name: 'New', organizationIds: [organizationId] } }],
      ['renamePerson', { params: { personId }, body: { name: 'Other' } }],
      ['mintToken', { body: { kind: 'operator', name: 'new' } }],
      ['updateToken', { params: { tokenId }, body: { name: 'other' } }],
      ['rotateToken', { params: { tokenId }, body: {} }],
      ['revokeToken', { params: { tokenId } }],
      ['publishAgent', { params: { agentId } }],
      [
        'applyManifests',
        { body: { organizationId, manifests: [manifestOf('new'), manifestOf('kept')], publish: true } },
      ],
      ['updateAgent', { params: { agentId }, body: { apiEnabled: false } }],
      ['rollBackAgent', { params: { agentId }, body: {} }],
      ['invitePerson', { params: { agentId }, body: { personId } }],
      ['deleteAgent', { params: { agentId } }],
      ['archiveThread', { params: { threadId: idle } }],
      ['unarchiveThread', { params: { threadId: archived } }],
      ['answerConfirmation', { params: { ...asking }, body: { decision: 'allow_once' } }],
      ['terminateThread', { params: { threadId } }],
      ['deleteThread', { params: { threadId } }],
      ['cancelRun', { params: { runId } }],
      ['retryRun', { params: { runId: ended.runId } }],
      ['pauseQueue', {}],
      ['rebuildProjections', { body: {} }],
    ];
    // A difference that rebuild would repair.
    await admin.pool.query(`update thread_summaries set title = 'wrong' where thread_id = $1`, [threadId]);
    await admin.pool.query('alter table audit_entries enable trigger fail_audit');
    const before = await everything();
    for (const [name, sent] of all) {
      expect([name, (await admin.refused(name, sent))[0]]).toEqual([name, 'internal_error']);
      expect([name, await everything()]).toEqual([name, before]);
    }
    await admin.pool.query('alter table audit_entries disable trigger fail_audit');
    // Shows that each call would have changed something.
    for (const [name, sent] of all) {
      if (name === 'cancelRun' || name === 'retryRun' || name === 'deleteThread') continue;
      const { length } = await admin.entriesOf(() => admin.send(name, sent));
      expect([name, length > 0]).toEqual([name, true]);
    }
  });
});

test('the audit log rejects update, delete and truncate', async () => {
  for (const statement of [
    `update audit_entries set actor_name = 'nobody'`,
    'delete from audit_entries',
    'truncate audit_entries',
    'truncate audit_entries cascade',
  ]) {
    await expect(admin.pool.query(statement)).rejects.toThrow('append-only');
  }
});

test('parallel changes each have an audit entry with the value before', async () => {
  const { organization } = await admin.do('createOrganization', { body: { name: '0' } });
  const params = { organizationId: organization.id };
  const names = Array.from({ length: 8 }, (_, i) => `name ${i}`);
  const entries = await admin.entriesOf(() =>
    Promise.all(names.map((name) => admin.do('renameOrganization', { params, body: { name } }))),
  );
  const steps = new Map(entries.map(({ details }) => [details['was'], details['name']]));
  // The entries form one chain from the first name through all others.
  let last: unknown = '0';
  for (let i = 0; i < names.length; i++) last = steps.get(last);
  expect((await admin.do('getOrganization', { params })).organization.name).toBe(last);
  expect(steps.size).toBe(names.length);

  const agentId = await newAgent('in parallel');
  const published = await admin.actionsOf(() =>
    Promise.all(names.map(() => admin.do('publishAgent', { params: { agentId } }))),
  );
  expect(published).toEqual(['agent.published']);

  const { tokenId } = await newToken();
  const expiresAt = '2030-01-01T00:00:00.000Z';
  const updated = await admin.entriesOf(() =>
    Promise.all([
      ...names.map((name) => admin.do('updateToken', { params: { tokenId }, body: { name } })),
      admin.do('updateToken', { params: { tokenId }, body: { expiresAt } }),
    ]),
  );
  expect(updated.map(({ details }) => Object.keys(details).length)).toEqual(updated.map(() => 1));
});

describe('the list of audit entries', () => {
  const ids = (entries: AuditEntry[]): string[] => entries.map(({ id }) => id);

  test('has pages that neither skip nor repeat entries while others are added', async () => {
    const all = ids((await admin.do('listAudit')).entries);
    const seen: string[] = [];
    for (let cursor: string | undefined; ;) {
      const { entries, nextCursor } = await admin.do('listAudit', { query: { limit: 7, ...(cursor && { cursor }) } });
      seen.push(...ids(entries));
      await admin.do('createPerson', { body: { name: 'meanwhile' } });
      if (nextCursor === null || seen.length >= all.length) break;
      expect(entries).toHaveLength(7);
      cursor = nextCursor;
    }
    expect(seen.slice(0, all.length)).toEqual(all);
    expect(all.toSorted().toReversed()).toEqual(all);
  });

  test('has filters by actor, organization, target, action and time', async () => {
    const { token, secret } = await admin.do('mintToken', { body: { kind: 'operator', name: 'Linus' } });
    const { rows } = await admin.pool.query<{ now: string }>('select clock_timestamp() as now');
    const since = rows[0]!.now;
    const { organization } = await admin.do('createOrganization', { body: { name: 'Filtered' }, token: secret });
    const params = { organizationId: organization.id };
    await admin.do('renameOrganization', { params, body: { name: 'Found' } });
    const actions = async (query: Record<string, string>) =>
      (await admin.do('listAudit', { query })).entries.map(({ action }) => action);
    expect(await actions({ actorId: token.id })).toEqual(['organization.created']);
    const both = ['organization.renamed', 'organization.created'];
    expect(await actions({ organizationId: organization.id.toLowerCase() })).toEqual(both);
    expect(await actions({ targetId: organization.id })).toEqual(both);
    expect(await actions({ since })).toEqual(both);
    expect(await actions({ since, action: 'organization.renamed' })).toEqual(['organization.renamed']);
    expect(await actions({ since, action: 'organization' })).toEqual(both);
    expect(await actions({ since, action: 'org' })).toEqual([]);
    expect(await actions({ since: '2999-01-01T00:00:00-23:00' })).toEqual([]);
    expect(await actions({ actorId: `' or true --` })).toEqual([]);
    expect(await actions({ since, action: 'organization._enamed' })).toEqual([]);
  });
});
