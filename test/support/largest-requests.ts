import { hash } from 'node:crypto';
import { ulid } from 'ulid';
import { adminOperations, operations, type AdminOperation, type AdminOperationName } from '#contract';
import { BODY_BYTES, MESSAGE_CHARACTERS, MIB, parts, type Act, type Got, type LargestWorld } from './largest-world.ts';
import { refusedRequests } from './refused-requests.ts';

export type OperationName = keyof typeof operations;

/** The requests of an operation: those that are done, and those that are refused, or done without what is too much. */
export interface LargestRequests {
  done: Act[];
  refused: Act[];
}

type Make<Name extends string> = Record<Name, (on: LargestWorld, more: More) => Act[]>;

/** What requests use up: some of it for each connection. */
export interface More {
  /** Idle Threads, one for each connection. */
  threadIds: string[];
  /** The largest Agent. */
  hugeAgentId: string;
}

const json = (value: unknown): string => JSON.stringify(value);
const fit = (unit: string): string => unit.repeat(MESSAGE_CHARACTERS / [...unit].length);

/** Texts that cost the most in one way or another: Latin, two and three bytes, pairs of surrogates, escapes, citation marks. */
const TEXTS = ['x', 'é', '€', '😀', '\n', '"', '\u0001'];

const createBody = (letter: string): string =>
  json({ userId: 'u', input: { type: 'user.message', content: parts(letter, BODY_BYTES).map(toPart) } });
const toPart = (text: string) => ({ type: 'text', text });

/** As many of the largest messages as fit. */
function messages(letter: string): string {
  const one = { type: 'user_message', text: fit(letter) };
  const count = Math.min(100, Math.floor(BODY_BYTES / (Buffer.byteLength(json(one)) + 1)));
  return json({ events: Array(count).fill(one) });
}

const PUBLIC: Make<OperationName> = {
  createThread: (on) => {
    const path = `/agents/${on.agentId}/threads`;
    const thousandParts = Array.from({ length: 1_000 }, () => toPart('€'.repeat(2_700)));
    const bodies = [
      ...TEXTS.map(createBody),
      json({ userId: '€'.repeat(255), input: { type: 'user.message', content: thousandParts } }),
    ];
    return bodies.flatMap((body) => [
      () => on.public('POST', path, body),
      () => on.public('POST', `${path}?extended=true`, body, { 'idempotency-key': ulid() }),
    ]);
  },
  sendEvents: (on, { threadIds }) => {
    const bodies = [
      ...TEXTS.map(messages),
      json({ events: Array(100).fill({ type: 'user_message', text: '€'.repeat(27_000), requestId: '€'.repeat(255) }) }),
    ];
    return bodies.map(
      (body) => (i) => on.public('POST', `/threads/${threadIds[i]}/events`, body, { 'idempotency-key': ulid() }),
    );
  },
  listEvents: (on) => {
    const path = `/threads/${on.threadId}/events`;
    const first = '0'.repeat(26);
    return [`?limit=1000`, `?limit=1000&after=${first}`, `?limit=1&after=${first}`, `?limit=1000&extended=true`].map(
      (query) => () => on.public('GET', path + query),
    );
  },
  streamEvents: (on, { threadIds }) => [
    () => on.public('GET', `/threads/${on.threadId}/events/stream?limit=1000&until=idle`),
    () => on.public('GET', `/threads/${on.threadId}/events/stream?limit=1000&until=idle&extended=true`),
    // Followed while it grows.
    async (i) => {
      await on.public(
        'POST',
        `/threads/${threadIds[i]}/events`,
        json({ events: [{ type: 'user_message', text: 'go' }] }),
      );
      const stream = `/threads/${threadIds[i]}/events/stream?limit=0&until=idle`;
      const following = Promise.all([1, 2, 3].map(() => on.public('GET', stream)));
      await on.public('POST', `/threads/${threadIds[i]}/events`, messages('€'));
      await on.public('POST', `/threads/${threadIds[i]}/events`, json({ events: [{ type: 'user_interrupt' }] }));
      return (await following)[0]!;
    },
  ],
  listThreads: (on) => [
    () => on.public('GET', `/agents/${on.agentId}/threads?limit=100&archived=all&extended=true`),
    () => on.public('GET', `/agents/${on.agentId}/threads?limit=100&userId=${'u'.repeat(255)}`),
  ],
  listAllThreads: (on) => [() => on.public('GET', '/threads?limit=100&archived=all&extended=true')],
  createBrowserToken: (on) => {
    const origins = Array.from({ length: 10 }, (_, i) => `https://${i}.${'o'.repeat(60)}.example`);
    const verbs = ['read', 'send', 'decide', 'upload', 'manage'];
    const body = json({ userId: '€'.repeat(255), agentId: on.agentId, verbs, origins });
    return [() => on.service('POST', '/browser-tokens', body)];
  },
  getAgent: (on) => [() => on.public('GET', `/agents/${on.agentId}`)],
  getThread: (on) => [() => on.public('GET', `/threads/${on.threadId}?extended=true`)],
  updateThread: (on) => [
    () => on.public('PATCH', `/threads/${on.threadId}`, json({ title: '€'.repeat(255) })),
    () => on.public('PATCH', `/threads/${on.threadId}?extended=true`, json({ title: null })),
  ],
  deleteThread: (on) => [
    async () => {
      const created = await on.public('POST', `/agents/${on.agentId}/threads`, createBody('é'));
      if (created.status !== 201) return created;
      const { thread } = JSON.parse(created.text) as { thread: { id: string } };
      return on.public('DELETE', `/threads/${thread.id}`);
    },
  ],
  archiveThread: (on) => [() => on.public('POST', `/threads/${on.threadId}/archive`)],
  unarchiveThread: (on) => [() => on.public('POST', `/threads/${on.threadId}/unarchive`)],
  listMessages: (on) => [() => on.public('GET', `/threads/${on.threadId}/messages?limit=100`)],
  listRuns: (on) => [() => on.public('GET', `/threads/${on.threadId}/runs?limit=100`)],
  getRun: (on) => [() => on.public('GET', `/threads/${on.threadId}/runs/${on.runId}`)],
  retryRun: (on, { threadIds }) => [
    async (i) => {
      const path = `/threads/${threadIds[i]}`;
      await on.public('POST', `${path}/events`, json({ events: [{ type: 'user_message', text: 'x' }] }));
      await on.public('POST', `${path}/events`, json({ events: [{ type: 'user_interrupt' }] }));
      const { text } = await on.public('GET', path);
      const { run } = JSON.parse(text) as { run: { id: string } };
      const retried = await on.public('POST', `${path}/runs/${run.id}/retry`, undefined, { 'idempotency-key': ulid() });
      await on.public('POST', `${path}/events`, json({ events: [{ type: 'user_interrupt' }] }));
      return retried;
    },
  ],
  uploadFile: (on) => [
    async () => {
      const uploaded = await upload(on, 64 * MIB - 1_024);
      if (uploaded.status === 201) {
        const { file } = JSON.parse(uploaded.text) as { file: { id: string } };
        await on.public('DELETE', `/files/${file.id}`);
      }
      return uploaded;
    },
  ],
  attachFile: (on, { threadIds }) => {
    const contentBase64 = Buffer.alloc(5 * MIB, 'bytes').toString('base64');
    const body = json({ name: '€'.repeat(255), contentType: `a/${'b'.repeat(253)}`, contentBase64 });
    return [
      async (i) => {
        const attached = await on.public('POST', `/threads/${threadIds[i]}/files`, body);
        if (attached.status === 201) {
          const { file } = JSON.parse(attached.text) as { file: { id: string } };
          await on.public('DELETE', `/threads/${threadIds[i]}/files/${file.id}`);
        }
        return attached;
      },
    ];
  },
  listFiles: (on) => [() => on.public('GET', `/threads/${on.filesThreadId}/files`)],
  detachFile: (on, { threadIds }) => [
    async (i) => {
      const body = json({ name: 'a', contentType: 'text/plain', contentBase64: 'aGk=' });
      const { text } = await on.public('POST', `/threads/${threadIds[i]}/files`, body);
      const { file } = JSON.parse(text) as { file: { id: string } };
      return on.public('DELETE', `/threads/${threadIds[i]}/files/${file.id}`, undefined, { 'if-match': '*' });
    },
  ],
  getFile: (on) => [() => on.public('GET', `/files/${on.fileId}?extended=true`)],
  getFileLink: (on) => [() => on.public('GET', `/files/${on.fileId}/link`)],
  deleteFile: (on) => [
    async () => {
      const { text } = await upload(on, MIB);
      const { file } = JSON.parse(text) as { file: { id: string } };
      return on.public('DELETE', `/files/${file.id}`);
    },
  ],
  readContent: (on) => [() => on.public('GET', `/files/${on.fileId}/content`)],
};

function upload(on: LargestWorld, bytes: number): Promise<Got> {
  const head = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n';
  const body = Buffer.concat([Buffer.from(head), Buffer.alloc(bytes, 'text '), Buffer.from('\r\n--b--\r\n')]);
  const type = { 'content-type': 'multipart/form-data; boundary=b' };
  return on.public('POST', `/agents/${on.agentId}/files`, body, type);
}

const NAME = '€'.repeat(255);

/** The largest manifests, as many as fit: of so many characters of instructions each. */
function manifestsOf(organizationId: string, count: number, instructions: string) {
  const manifests = Array.from({ length: count }, (_, i) => ({
    ...{ name: `m${i}`, description: 'd'.repeat(4_000), instructions, harness: { name: 'echo' } },
  }));
  return { organizationId, manifests };
}

/** One manifest, as large as it may be. Its lines differ by `seed`, so that each is a new version. */
export function hugeManifest(seed: string) {
  const servers = Array.from({ length: 20 }, (_, i) => ({
    name: `server-${i}`,
    url: `https://example.org/${i}`,
    required: false,
    idempotent: Array.from({ length: 300 }, (_tool, tool) => `${seed} ${tool}`),
  }));
  return {
    ...{
      name: 'huge',
      description: 'd'.repeat(4_000),
      kind: 'cattle',
      instructions: `${seed}\n`.repeat(100_000 / (seed.length + 1)),
    },
    harness: { name: 'echo' },
    toolServers: servers,
    tools: Array.from({ length: 1_000 }, (_, i) => ({ pattern: `${seed}${i}`, policy: 'allow' })),
  };
}

type Body = Parameters<LargestWorld['admin']>[2];

/** Requests to an operation of the admin API, with its path filled in. */
function admin(on: LargestWorld, name: AdminOperationName, params: Record<string, string | number>) {
  const { method, path }: AdminOperation = adminOperations[name];
  const url = path.replaceAll(/\{(\w+)\}/g, (_, param: string) => String(params[param]));
  return (query = '', body?: Body): Act =>
    () =>
      on.admin(method, url + query, body);
}

/** What the requests to the admin API are made with. */
function adminMaker(on: LargestWorld) {
  const { organizationId, personId, agentId, tokenId, threadId, runId, requestId, fileId } = on;
  const params = { organizationId, personId, agentId, tokenId, threadId, runId, requestId, version: 1, fileId };
  const to = (name: AdminOperationName, more: Record<string, string | number> = {}) =>
    admin(on, name, { ...params, ...more });
  const oneOf = async (name: 'createOrganization' | 'createPerson', key: string): Promise<string> => {
    const { text } = await on.admin('POST', adminOperations[name].path, NAMED);
    return (JSON.parse(text) as Record<string, { id: string }>)[key]!.id;
  };
  return { to, oneOf };
}

const NAMED = json({ name: NAME });
const PAGE = '?limit=100';

function peopleActs(on: LargestWorld) {
  const { to, oneOf } = adminMaker(on);
  const { organizationId, personId, agentId } = on;
  const newToken = async (): Promise<string> => {
    const { text } = await on.admin('POST', '/tokens', json({ kind: 'operator', name: 'new' }));
    return (JSON.parse(text) as { token: { id: string } }).token.id;
  };
  return {
    createOrganization: [to('createOrganization')('', NAMED)],
    listOrganizations: [to('listOrganizations')(PAGE)],
    getOrganization: [to('getOrganization')()],
    renameOrganization: [to('renameOrganization')('', NAMED)],
    limitOrganization: [to('limitOrganization')('', json({ runs: 10_000 }))],
    setFileQuota: [to('setFileQuota')('', json({ maxCount: null, maxBytes: null }))],
    addMember: [to('addMember')('', json({ personId }))],
    removeMember: [
      async () => {
        const person = await oneOf('createPerson', 'person');
        await on.admin('POST', `/organizations/${organizationId}/members`, json({ personId: person }));
        return to('removeMember', { personId: person })()(0);
      },
    ],
    createPerson: [to('createPerson')('', json({ name: NAME, organizationIds: [organizationId] }))],
    listPeople: [to('listPeople')(PAGE)],
    getPerson: [to('getPerson')()],
    renamePerson: [to('renamePerson')('', NAMED)],
    mintToken: [
      to('mintToken')(
        '',
        json({ kind: 'service', organizationId, agentIds: Array<string>(100).fill(agentId), name: NAME }),
      ),
    ],
    listTokens: [to('listTokens')(PAGE)],
    getToken: [to('getToken')()],
    updateToken: [to('updateToken')('', json({ name: NAME }))],
    rotateToken: [async () => to('rotateToken', { tokenId: await newToken() })('', '{}')(0)],
    revokeToken: [async () => to('revokeToken', { tokenId: await newToken() })()(0)],
    createChatToken: [to('createChatToken')('', json({ agentId }))],
    identifyToken: [to('identifyToken')('', json({ sha256: hash('sha256', on.system.personToken) }))],
  };
}

function agentActs(on: LargestWorld, hugeAgentId: string) {
  const { to, oneOf } = adminMaker(on);
  const { organizationId, personId } = on;
  const newAgent = async (): Promise<string> => {
    const manifests = [{ name: ulid(), harness: { name: 'echo' } }];
    const { text } = await on.admin('POST', '/agents/apply', json({ organizationId, manifests }));
    return (JSON.parse(text) as { agents: { agentId: string }[] }).agents[0]!.agentId;
  };
  const hugeBody = () => json({ organizationId, manifests: [hugeManifest(ulid())] });
  return {
    applyManifests: [
      (i: number) =>
        to('applyManifests')('', json(manifestsOf(organizationId, 75, `${ulid()}${i}\n`.repeat(3_400))))(i),
      to('applyManifests')('', json({ ...manifestsOf(organizationId, 75, '€'.repeat(33_000)), dryRun: true })),
      to('applyManifests')('', json({ ...manifestsOf(organizationId, 200, '"'.repeat(15_000)), dryRun: true })),
      (i: number) => to('applyManifests')('', hugeBody())(i),
    ],
    listAgents: [to('listAgents')(PAGE)],
    getAgent: [to('getAgent', { agentId: hugeAgentId })()],
    updateAgent: [to('updateAgent')('', json({ apiEnabled: true, ownerPersonId: personId }))],
    publishAgent: [to('publishAgent')()],
    unpublishAgent: [async () => to('unpublishAgent', { agentId: await newAgent() })()(0)],
    listVersions: [to('listVersions', { agentId: hugeAgentId })(PAGE)],
    getVersion: [to('getVersion', { agentId: hugeAgentId })()],
    rollBackAgent: [to('rollBackAgent', { agentId: hugeAgentId })('', json({}))],
    deleteAgent: [async () => to('deleteAgent', { agentId: await newAgent() })()(0)],
    invitePerson: [to('invitePerson')('', json({ personId }))],
    uninvitePerson: [
      async () => {
        const person = await oneOf('createPerson', 'person');
        return to('uninvitePerson', { personId: person })()(0);
      },
    ],
  };
}

function threadActs(on: LargestWorld) {
  const { to } = adminMaker(on);
  const { agentId, waitingThreadId, longRunId } = on;
  const onNewThread = (act: (thread: { threadId: string; runId: string }) => Promise<Got>): Act => {
    return async () => {
      const created = await on.public('POST', `/agents/${agentId}/threads`, createBody('y'));
      if (created.status !== 201) return created;
      const { thread, run } = JSON.parse(created.text) as { thread: { id: string }; run: { id: string } };
      return act({ threadId: thread.id, runId: run.id });
    };
  };
  return {
    listThreads: [to('listThreads')(PAGE), to('listThreads')(`${PAGE}&search=${encodeURIComponent('€'.repeat(255))}`)],
    getThread: [to('getThread')()],
    exportThread: [to('exportThread')()],
    tailThread: [to('tailThread')(`?until=idle&after=${'0'.repeat(26)}`)],
    terminateThread: [onNewThread((thread) => to('terminateThread', thread)()(0))],
    deleteThread: [onNewThread((thread) => to('deleteThread', thread)()(0))],
    listRuns: [to('listRuns')(`${PAGE}&scope=all`)],
    suggestFilterValues: [to('suggestFilterValues')('?of=userId'), to('suggestFilterValues')('?of=cause')],
    getRun: [to('getRun')()],
    cancelRun: [onNewThread((thread) => to('cancelRun', thread)()(0))],
    retryRun: [
      onNewThread(async (thread) => {
        await to('cancelRun', thread)()(0);
        return to('retryRun', thread)()(0);
      }),
    ],
    archiveThread: [to('archiveThread')()],
    unarchiveThread: [to('unarchiveThread')()],
    listThreadEvents: [to('listThreadEvents')(PAGE), to('listThreadEvents')(`${PAGE}&before=4`)],
    listThreadFiles: [to('listThreadFiles', { threadId: on.filesThreadId })(PAGE)],
    downloadFile: [to('downloadFile')()],
    listConfirmations: [to('listConfirmations')(PAGE)],
    answerConfirmation: [
      async (i: number) => {
        const answer = to('answerConfirmation', { threadId: waitingThreadId });
        const answered = await answer('', json({ decision: 'allow_once' }))(i);
        // It can be answered once.
        return answered.status === 409 ? { ...answered, status: 200 } : answered;
      },
    ],
    getRunTimeline: [to('getRunTimeline', { runId: longRunId })()],
    listRunEvents: [to('listRunEvents', { runId: longRunId })(PAGE)],
  };
}

function bulkActs(on: LargestWorld) {
  const { to } = adminMaker(on);
  const plan = json({ action: 'retry', filter: { userId: NAME } });
  const onNewPlan = (name: 'startBulkAction' | 'stopBulkAction' | 'getBulkAction' | 'listBulkActionRuns'): Act[] => [
    async () => {
      const { text } = await on.admin('POST', '/bulk-actions', plan);
      const { bulkAction } = JSON.parse(text) as { bulkAction: { id: string } };
      return to(name, { bulkActionId: bulkAction.id })()(0);
    },
  ];
  return {
    planBulkAction: [to('planBulkAction')('', json({ action: 'retry' }))],
    startBulkAction: onNewPlan('startBulkAction'),
    stopBulkAction: onNewPlan('stopBulkAction'),
    listBulkActions: [to('listBulkActions')(PAGE)],
    getBulkAction: onNewPlan('getBulkAction'),
    listBulkActionRuns: onNewPlan('listBulkActionRuns'),
  };
}

function serviceActs(on: LargestWorld) {
  const { to } = adminMaker(on);
  return {
    getOverview: [to('getOverview')('?windowMinutes=10080')],
    getQueue: [to('getQueue')()],
    pauseQueue: [to('pauseQueue')()],
    resumeQueue: [to('resumeQueue')()],
    verify: [to('verify')('', '{}')],
    verifyFiles: [to('verifyFiles')('', json({ hash: true }))],
    rebuildProjections: [to('rebuildProjections')('', '{}')],
    runDoctor: [to('runDoctor')()],
    listAudit: [to('listAudit')(PAGE)],
  };
}

/** The requests of each operation of the Agent Threads API. */
export function publicRequests(on: LargestWorld, more: More): Record<OperationName, LargestRequests> {
  const all = Object.entries(operations).map(([name, operation]) => {
    const done = PUBLIC[name as OperationName](on, more);
    return [name, { done, refused: refusedRequests(operation, (...sent) => on.public(...sent)) }];
  });
  return Object.fromEntries(all) as Record<OperationName, LargestRequests>;
}

/** The requests of each operation of the admin API. */
export function adminRequests(on: LargestWorld, more: More): Record<AdminOperationName, LargestRequests> {
  const acts: Record<AdminOperationName, Act[]> = {
    ...peopleActs(on),
    ...agentActs(on, more.hugeAgentId),
    ...threadActs(on),
    ...bulkActs(on),
    ...serviceActs(on),
  };
  const all = Object.entries(adminOperations).map(([name, operation]) => {
    const done = acts[name as AdminOperationName];
    return [name, { done, refused: refusedRequests(operation, (...sent) => on.admin(...sent)) }];
  });
  return Object.fromEntries(all) as Record<AdminOperationName, LargestRequests>;
}
