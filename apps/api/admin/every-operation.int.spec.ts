import { adminOperations, type AdminOperation, type AdminOperationName } from '#contract';
import { newId } from '#platform';
import { AdminUnderTest, type Sent } from './admin-under-test.testing.ts';

// Tests of all operations. A new operation fails here until it is in the table.

let admin: AdminUnderTest;
let world: World;
beforeAll(async () => {
  admin = await AdminUnderTest.start();
  world = await makeWorld();
});
afterAll(() => admin.stop());

interface World {
  organizationId: string;
  personId: string;
  agentId: string;
  tokenId: string;
  threadId: string;
  runId: string;
  /** The confirmation that a Run of the Thread waits for. */
  requestId: string;
  fileId: string;
  /** An id that nothing has. */
  absent: string;
}

async function makeWorld(): Promise<World> {
  const { api } = admin;
  const { organizationId, personId, agentId } = api;
  const { id: tokenId } = await api.access.mintToken({ kind: 'person', personId, name: 'theirs' });
  const threadId = await api.newThread({ text: 'hi' });
  const runId = (await api.get(`/threads/${threadId}`)).json.run.id;
  const requestId = await api.ask(threadId, runId);
  const inline = { name: 'a.txt', contentType: 'text/plain', contentBase64: 'aGk=' };
  const attached = await api.post(`/threads/${threadId}/files`, { body: inline });
  const { file } = attached.json as unknown as { file: { id: string } };
  return { organizationId, personId, agentId, tokenId, threadId, runId, requestId, fileId: file.id, absent: newId() };
}

interface Case {
  /** A valid request, without its path parameters. */
  given?: (world: World) => Sent;
  /** Requests with an unknown id, which must return 404. */
  unknown?: (world: World) => Sent[];
  /** Requests with one invalid field, which a 400 must name. Invalid ids, cursors, limits and unknown fields are tested for all. */
  wrong?: (world: World) => [Sent, string][];
}

const manifest = { name: 'new', harness: { name: 'echo' } };
const sha256 = 'ab'.repeat(32);
const tooLong = 'x'.repeat(256);
const wrongName = (more: object = {}): [Sent, string][] => [
  [{ body: { ...more, name: '' } }, 'body.name: must not be empty'],
  [{ body: { ...more, name: tooLong } }, 'body.name: must have at most 255'],
  [{ body: { ...more, name: 'a\0b' } }, 'body.name: must not contain NUL'],
  [{ body: { ...more, name: 7 } }, 'body.name: '],
];
const paramsOf = (params: Record<string, unknown>): Sent => ({ params });

const nothing = () => ({ body: {} });
const FROM: Case = { given: nothing, wrong: () => [[{ body: { from: 'x' } }, 'body.from: must be a ULID']] };
const CASES: Record<AdminOperationName, Case> = {
  createOrganization: { given: () => ({ body: { name: 'New' } }), wrong: () => wrongName() },
  listOrganizations: { wrong: () => [[{ query: { name: '' } }, 'query.name: ']] },
  getOrganization: {},
  renameOrganization: { given: () => ({ body: { name: 'New' } }), wrong: () => wrongName() },
  limitOrganization: {
    given: () => ({ body: { runs: 5 } }),
    wrong: () => [
      [{ body: {} }, 'body.runs: '],
      [{ body: { runs: 0 } }, 'body.runs: '],
      [{ body: { runs: 1.5 } }, 'body.runs: '],
      [{ body: { runs: '5' } }, 'body.runs: '],
    ],
  },
  setFileQuota: { given: nothing, wrong: () => [[{ body: { maxCount: -1 } }, 'body.maxCount: ']] },
  addMember: {
    given: ({ personId }) => ({ body: { personId } }),
    unknown: ({ absent, organizationId }) => [{ params: { organizationId }, body: { personId: absent } }],
    wrong: () => [[{ body: { personId: 'x' } }, 'body.personId: must be a ULID']],
  },
  removeMember: {},
  createPerson: {
    given: () => ({ body: { name: 'New' } }),
    unknown: ({ organizationId, absent }) => [{ body: { name: 'New', organizationIds: [organizationId, absent] } }],
    wrong: () => [
      ...wrongName(),
      [{ body: { name: 'New', organizationIds: ['x'] } }, 'body.organizationIds.0: must be a ULID'],
      [{ body: { name: 'New', organizationIds: Array(101).fill('x') } }, 'body.organizationIds: must have at most 100'],
    ],
  },
  listPeople: {},
  getPerson: {},
  renamePerson: { given: () => ({ body: { name: 'New' } }), wrong: () => wrongName() },
  mintToken: {
    given: () => ({ body: { kind: 'operator', name: 'new' } }),
    unknown: ({ absent, agentId }) => [
      { body: { kind: 'person', personId: absent, name: 'new' } },
      { body: { kind: 'service', organizationId: absent, agentIds: [agentId], name: 'new' } },
    ],
    wrong: ({ organizationId, agentId, personId, absent }) => {
      const service = { kind: 'service', organizationId, name: 'new' };
      return [
        ...wrongName({ kind: 'operator' }),
        [{ body: { kind: 'admin', name: 'new' } }, 'body.kind: '],
        [{ body: { kind: 'operator', personId, name: 'new' } }, 'Unrecognized key'],
        [{ body: { kind: 'operator', name: 'new', maxStreams: 5 } }, 'Unrecognized key'],
        [{ body: { ...service, agentIds: [] } }, 'body.agentIds: must have at least 1'],
        [{ body: { ...service, agentIds: Array(101).fill(agentId) } }, 'body.agentIds: must have at most 100'],
        [{ body: { ...service, agentIds: [agentId, absent] } }, 'only those of the same organization'],
        ...['soon', '2027-01-01', '0000-01-01T00:00:00Z', '9999-12-31T23:59:59-23:59'].map(
          (expiresAt): [Sent, string] => [
            { body: { kind: 'operator', name: 'new', expiresAt } },
            'body.expiresAt: must be ',
          ],
        ),
      ];
    },
  },
  listTokens: {
    wrong: () => [
      [{ query: { kind: 'admin' } }, 'query.kind: '],
      [{ query: { status: 'lost' } }, 'query.status: '],
    ],
  },
  getToken: {},
  updateToken: {
    given: () => ({ body: { name: 'New' } }),
    wrong: ({ tokenId, agentId }) => [
      ...wrongName(),
      [{ body: { expiresAt: 'x' } }, 'body.expiresAt: must be a time'],
      [{ body: { addAgentIds: Array(101).fill('x') } }, 'body.addAgentIds: must have at most 100'],
      [{ params: { tokenId }, body: { addAgentIds: [agentId] } }, 'Only a service token lists agents'],
      [{ params: { tokenId }, body: { allowAttribution: true } }, 'on behalf of people (allowAttribution)'],
    ],
  },
  rotateToken: {
    given: () => ({ body: {} }),
    wrong: () => [
      [{ body: { graceSeconds: -1 } }, 'body.graceSeconds: '],
      [{ body: { graceSeconds: 2_592_001 } }, 'body.graceSeconds: '],
      [{ body: { graceSeconds: 0.5 } }, 'body.graceSeconds: '],
    ],
  },
  revokeToken: {},
  identifyToken: {
    given: () => ({ body: { sha256 } }),
    unknown: () => [{ body: { sha256 } }],
    wrong: () => [
      [{ body: { sha256: sha256.slice(1) } }, 'body.sha256: must be a SHA-256'],
      [{ body: { sha256: 'xy'.repeat(32) } }, 'body.sha256: must be a SHA-256'],
    ],
  },
  createChatToken: {
    given: ({ agentId }) => ({ body: { agentId } }),
    unknown: ({ absent }) => [{ body: { agentId: absent } }],
    wrong: () => [[{ body: { agentId: 'x' } }, 'body.agentId: must be a ULID']],
  },
  applyManifests: {
    given: ({ organizationId }) => ({ body: { organizationId, manifests: [manifest], publish: true } }),
    unknown: ({ organizationId, absent }) => [
      { body: { organizationId: absent, manifests: [manifest] } },
      { body: { organizationId, ownerPersonId: absent, manifests: [manifest] } },
    ],
    wrong: ({ organizationId }) => [
      [{ body: { organizationId, manifests: [] } }, 'body.manifests: must have at least 1'],
      [{ body: { organizationId, manifests: Array(201).fill(manifest) } }, 'body.manifests: must have at most 200'],
      [{ body: { organizationId, manifests: ['x'] } }, 'body.manifests.0: '],
      [{ body: { organizationId, manifests: [manifest, { ...manifest, nmae: 1 }] } }, 'manifests.1.'],
      [{ body: { organizationId, manifests: [manifest, manifest] } }, 'Two manifests have the name "new"'],
      [{ body: { organizationId, manifests: [manifest], dryRun: 'yes' } }, 'body.dryRun: '],
      [
        { body: { organizationId, manifests: [manifest], expectedVersions: { new: -1 } } },
        'body.expectedVersions.new: ',
      ],
    ],
  },
  listAgents: { wrong: () => [[{ query: { deleted: 'yes' } }, 'query.deleted: ']] },
  getAgent: {},
  updateAgent: {
    given: () => ({ body: { apiEnabled: false } }),
    unknown: ({ agentId, absent }) => [{ params: { agentId }, body: { ownerPersonId: absent } }],
    wrong: () => [
      [{ body: { access: 'everybody' } }, 'body.access: '],
      [{ body: { published: false } }, 'Unrecognized key: "published"'],
      [{ body: { deleted: true } }, 'Unrecognized key: "deleted"'],
    ],
  },
  publishAgent: {},
  unpublishAgent: {},
  listVersions: { wrong: () => [[{ query: { before: '0' } }, 'query.before: ']] },
  getVersion: {
    unknown: ({ agentId }) => [paramsOf({ agentId, version: 2 }), paramsOf({ agentId, version: 999_999_999 })],
    wrong: ({ agentId }) =>
      ['0', '-1', 'x', '1e2', '0x1', '9999999999'].map((version) => [paramsOf({ agentId, version }), 'path.version: ']),
  },
  rollBackAgent: {
    given: () => ({ body: {} }),
    unknown: ({ agentId }) => [{ params: { agentId }, body: { version: 2 } }],
    wrong: () => [0, 2 ** 40].map((version) => [{ body: { version } }, 'body.version: ']),
  },
  deleteAgent: {},
  invitePerson: {
    given: ({ personId }) => ({ body: { personId } }),
    unknown: ({ agentId, absent }) => [{ params: { agentId }, body: { personId: absent } }],
    wrong: () => [[{ body: {} }, 'body.personId: ']],
  },
  uninvitePerson: {},
  listThreads: {
    wrong: () => [
      [{ query: { status: 'idle' } }, 'query.status: '],
      [{ query: { archived: 1 } }, 'query.archived: '],
      [{ query: { externalRef: '' } }, 'query.externalRef: must not be empty'],
      [{ query: { search: '' } }, 'query.search: must not be empty'],
      [{ query: { search: tooLong } }, 'query.search: must have at most 255'],
    ],
  },
  getThread: {},
  exportThread: {},
  tailThread: { wrong: () => [[{ query: { until: 'never' } }, 'query.until: ']] },
  terminateThread: {},
  deleteThread: {},
  listRuns: {
    unknown: ({ absent }) => [{ query: { threadId: absent } }],
    wrong: () => [
      [{ query: { status: 'lost' } }, 'query.status: '],
      [{ query: { scope: 'ended' } }, 'query.scope: '],
      [{ query: { errorCode: '' } }, 'query.errorCode: must not be empty'],
      [{ query: { since: 'yesterday' } }, 'query.since: must be a time'],
    ],
  },
  getRun: {},
  cancelRun: {},
  retryRun: {},
  getOverview: {
    wrong: () =>
      ['4', '10081', '-1', '1e2', 'x', ''].map((windowMinutes) => [
        { query: { windowMinutes } },
        'query.windowMinutes: must be ',
      ]),
  },
  archiveThread: {},
  unarchiveThread: {},
  listThreadEvents: {
    wrong: ({ threadId }) => [
      [{ params: { threadId }, query: { before: 0 } }, 'query.before: must be at least 1'],
      [{ params: { threadId }, query: { before: 'x' } }, 'query.before: '],
    ],
  },
  listThreadFiles: {},
  downloadFile: {},
  listConfirmations: { unknown: ({ absent }) => [{ query: { threadId: absent } }] },
  answerConfirmation: {
    given: () => ({ body: { decision: 'allow_once' } }),
    wrong: () => [
      [{ body: {} }, 'body.decision: '],
      [{ body: { decision: 'allow_always' } }, 'body.decision: '],
    ],
  },
  getRunTimeline: {},
  getQueue: {},
  pauseQueue: {},
  resumeQueue: {},
  verify: FROM,
  verifyFiles: FROM,
  rebuildProjections: FROM,
  runDoctor: {},
  listAudit: {
    wrong: () => [
      [{ query: { since: 'yesterday' } }, 'query.since: must be a time'],
      [{ query: { actorId: '' } }, 'query.actorId: '],
    ],
  },
};

const names = Object.keys(adminOperations) as AdminOperationName[];
const operationOf = (name: AdminOperationName): AdminOperation => adminOperations[name];

/** Returns a value of the world for each path parameter. */
function paramsIn(name: AdminOperationName): Record<string, string> {
  const there: Record<string, string> = { ...world, version: '1' };
  return Object.fromEntries(Object.keys(operationOf(name).params.shape).map((key) => [key, there[key]!]));
}

function sentTo(name: AdminOperationName): Sent {
  return { params: paramsIn(name), ...CASES[name].given?.(world) };
}

/** Does work that must change no table. */
async function unchanged(work: () => Promise<void>): Promise<void> {
  const before = await admin.rowCounts();
  await work();
  expect(await admin.rowCounts()).toEqual(before);
}

it('the table has a case for each operation', () => {
  expect(Object.keys(CASES).toSorted()).toEqual(names.toSorted());
  const takingBody = names.filter((name) => operationOf(name).body !== null);
  expect(takingBody.filter((name) => CASES[name].given === undefined)).toEqual([]);
});

describe('authorization', () => {
  const tokens: Record<string, string | null> = { none: null, nonsense: 'spool_op_x' };
  beforeAll(async () => {
    const { api } = admin;
    const { organizationId, agentId } = world;
    tokens['person'] = api.token;
    const service = {
      kind: 'service',
      organizationId,
      agentIds: [agentId],
      name: 's',
      allowAttribution: true,
    } as const;
    tokens['service'] = (await api.access.mintToken(service)).token;
    const operator = await api.access.mintToken({ kind: 'operator', name: 'gone' });
    await api.access.revokeToken(operator.id);
    tokens['revoked'] = operator.token;
    const past = { kind: 'operator', name: 'past', expiresAt: new Date(Date.now() - 1_000) } as const;
    tokens['expired'] = (await api.access.mintToken(past)).token;
  });

  it.each(names)('%s refuses all callers except operators', (name) =>
    unchanged(async () => {
      const codes: Record<string, string> = {};
      for (const [kind, token] of Object.entries(tokens)) {
        [codes[kind] = ''] = await admin.refused(name, { ...sentTo(name), token });
      }
      expect(codes).toEqual({
        none: 'unauthenticated',
        nonsense: 'unauthenticated',
        person: 'forbidden',
        service: 'forbidden',
        revoked: 'unauthenticated',
        expired: 'unauthenticated',
      });
    }),
  );
});

it.each(names)('%s returns not_found for each unknown id', (name) =>
  unchanged(async () => {
    const sent = sentTo(name);
    const params = Object.keys(sent.params ?? {}).filter((key) => key !== 'version');
    const unknown = [
      ...params.map((key): Sent => ({ ...sent, params: { ...sent.params, [key]: world.absent } })),
      ...(CASES[name].unknown?.(world) ?? []).map((more): Sent => ({ ...sent, ...more })),
    ];
    for (const each of unknown) {
      const [code, message] = await admin.refused(name, each);
      expect([name, each, code, message]).toEqual([name, each, 'not_found', expect.stringMatching(/\w/)]);
    }
  }),
);

it.each(names)('%s returns invalid_request with the name of the invalid field', (name) =>
  unchanged(async () => {
    const { query, body } = operationOf(name);
    const sent = sentTo(name);
    const wrong: [Sent, string][] = [...(CASES[name].wrong?.(world) ?? [])];
    for (const key of Object.keys(sent.params ?? {})) {
      wrong.push([{ params: { ...sent.params, [key]: "'; drop table agents; --" } }, `path.${key}: `]);
    }
    for (const key of Object.keys(query.shape).filter((each) => each === 'cursor' || /Id$|^after$/.test(each))) {
      if (key !== 'actorId' && key !== 'targetId' && key !== 'userId') {
        wrong.push([{ query: { [key]: 'x' } }, `query.${key}: must be a ULID`]);
      }
    }
    if ('limit' in query.shape) {
      for (const limit of [0, 101, -1, '1e1', '']) wrong.push([{ query: { limit } }, 'query.limit: must be ']);
    }
    if (body !== null) {
      wrong.push([{ body: { ...(sent.body as object), surprise: 1 } }, 'Unrecognized key: "surprise"']);
      wrong.push([{ body: [] }, 'body: ']);
      if (!body.safeParse(undefined).success) wrong.push([{ body: undefined }, 'body: ']);
    }
    for (const [more, place] of wrong) {
      const refusal = await admin.refused(name, { ...sent, ...more });
      expect([name, more, ...refusal]).toEqual([name, more, 'invalid_request', expect.stringContaining(place)]);
    }
    if (body === null) return;
    expect((await admin.refused(name, { ...sent, body: '{"name":' }))[0]).toBe('invalid_json');
    const [url, init] = admin.request(name, { ...sent, body: 'name=x' });
    const form = { ...(init.headers as object), 'content-type': 'application/x-www-form-urlencoded' };
    expect((await fetch(url, { ...init, headers: form })).status).toBe(415);
  }),
);

it('the admin API returns 413 for a body above the limit, and reads one just below it', async () => {
  const limit = 8 * 1024 * 1024;
  const body = (length: number): string => JSON.stringify({ name: 'x', more: 'y'.repeat(length) });
  const { status } = await admin.send('createOrganization', { body: body(limit) });
  expect(status).toBe(413);
  expect(await admin.refused('createOrganization', { body: body(limit - 100) })).toEqual([
    'invalid_request',
    'body: Unrecognized key: "more"',
  ]);
});

it('the admin API counts requests of operators, and returns 429 above the limit', async () => {
  const limited = await AdminUnderTest.start({ RATE_LIMIT_PER_PERSON_TOKEN: 3, RATE_LIMIT_STORE: 'process' });
  const statuses: unknown[] = [];
  for (let i = 0; i < 4; i++) {
    const { status, headers } = await limited.send('getQueue', {});
    statuses.push([status, headers.get('ratelimit-remaining'), headers.get('retry-after') !== null]);
  }
  expect(statuses).toEqual([
    [200, '2', false],
    [200, '1', false],
    [200, '0', false],
    [429, '0', true],
  ]);
  await limited.stop();
});
