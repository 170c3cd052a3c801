import type { AdminOperationName } from '#contract';
import type { Sent } from './admin-under-test.testing.ts';

/** Ids for requests. */
export interface World {
  organizationId: string;
  personId: string;
  agentId: string;
  tokenId: string;
  threadId: string;
  runId: string;
  /** The confirmation that a Run of the Thread waits for. */
  requestId: string;
  fileId: string;
  bulkActionId: string;
  /** An id that nothing has. */
  absent: string;
}

export interface Case {
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
/** A new operation must be added here. */
export const CASES: Record<AdminOperationName, Case> = {
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
  suggestFilterValues: {
    given: () => ({ query: { of: 'cause' } }),
    wrong: () => [[{ query: { of: 'x' } }, 'query.of: ']],
  },
  getRunTimeline: {},
  listRunEvents: {
    wrong: () => [
      [{ query: { afterVersion: -1 } }, 'query.afterVersion: '],
      [{ query: { afterVersion: 'x' } }, 'query.afterVersion: '],
    ],
  },
  planBulkAction: {
    given: () => ({ body: { action: 'retry' } }),
    wrong: () => [
      [{ body: { action: 'delete' } }, 'body.action: '],
      [{ body: { action: 'retry', filter: { status: 'running' } } }, 'body.filter.status: must be one of failed'],
      [{ body: { action: 'retry', filter: { since: 'now' } } }, 'body.filter.since: must be a time'],
      [{ body: { action: 'retry', filter: { surprise: 1 } } }, 'body.filter: Unrecognized key: "surprise"'],
    ],
  },
  startBulkAction: {},
  stopBulkAction: {},
  listBulkActions: {},
  getBulkAction: {},
  listBulkActionRuns: { wrong: () => [[{ query: { outcome: 'x' } }, 'query.outcome: ']] },
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
