import { operations } from '#contract';
import { isNight } from '#testing';
import {
  MatrixWorld,
  ROUTES,
  SENT_OPERATIONS,
  unknownIds,
  type AgentState,
  type Answered,
  type Ids,
  type Lifecycle,
  type MatrixAgent,
  type MatrixCaller,
  type OperationName,
  type Owner,
  type Route,
  type Thing,
} from './access-matrix.testing.ts';

// The access rules: every caller × agent access × agent state × owner of the Thread × route, over real HTTP. The expected
// answers are tables made only from the specification (docs/spec/agent-threads-api.md#access,
// docs/spec/agent-threads-api.md#authentication, docs/spec/agent-threads-api.md#errors,
// docs/spec/decisions.md#access, docs/spec/decisions.md#visibility). Real: HTTP, PostgreSQL, the disk.

/**
 * The agents that each caller may use. A person needs membership and, if access is `invited`, ownership or a name on the
 * list. A service token lists its agents. An operator may use none. Named people are on the list of every invited agent. The
 * owner also owns the invited agent of the other organization, without being a member there.
 */
const MAY_USE: Record<string, [acme: boolean, acmeInvited: boolean, other: boolean, otherInvited: boolean]> = {
  owner: [true, true, false, false],
  'named member': [true, true, false, false],
  'member, not named': [true, false, false, false],
  'member of both': [true, false, true, false],
  'named, member no more': [false, false, false, false],
  'of the other organization': [false, false, true, false],
  'of no organization': [false, false, false, false],
  service: [true, true, false, false],
  'service that lists it not': [false, false, false, false],
  'service of the other organization': [false, false, true, true],
  operator: [false, false, false, false],
};

const CONFLICT = '409 idempotency_conflict';
const GONE = '404 not_found';

/** "Only then `agent_not_published`, and `service_inactive` (published, but …)". A deleted agent no longer exists. */
const STATE_SAYS: Record<AgentState, string | null> = {
  live: null,
  unpublished: '409 agent_not_published',
  'never published': '409 agent_not_published',
  off: '409 service_inactive',
  'no live version': '409 service_inactive',
  deleted: GONE,
  'never published, deleted': GONE,
};

/** Threads and files are visible to their creator and, if attributed, also to that person. */
const VISIBLE: Record<string, boolean> = {
  own: true,
  'own, archived': true,
  'own, TERMINATED': true,
  'attributed to or by the caller': true,
  'own draft': true,
  'of another person': false,
  'of another person, TERMINATED': false,
  'of another service token': false,
  'of others, attributed': false,
  'draft of another person': false,
  'draft of another service token': false,
};

/**
 * The answer once access is granted: one for all Threads, or one for each lifecycle. An archived or TERMINATED Thread accepts
 * no event, and a draft has no content (docs/spec/decisions.md#routes, docs/spec/decisions.md#state-conflicts). These do not
 * say that an archived Thread accepts no retry and no file (docs/choices.md), and a TERMINATED Thread no change
 * (docs/api/README.md).
 */
const OUTCOMES: Record<OperationName, string | (Record<Lifecycle, string> & { draft?: string })> = {
  createThread: '201',
  listThreads: '200',
  listAllThreads: '200',
  uploadFile: '201',
  createBrowserToken: '201',
  getAgent: '200',
  getThread: '200',
  updateThread: { active: '200', archived: '200', terminated: CONFLICT },
  deleteThread: '200',
  archiveThread: { active: '200', archived: '200', terminated: CONFLICT },
  unarchiveThread: { active: '200', archived: '200', terminated: CONFLICT },
  sendEvents: { active: '200', archived: CONFLICT, terminated: CONFLICT },
  listEvents: '200',
  listMessages: '200',
  streamEvents: '200',
  listRuns: '200',
  getRun: '200',
  retryRun: { active: '201', archived: CONFLICT, terminated: CONFLICT },
  attachFile: { active: '201', archived: CONFLICT, terminated: CONFLICT },
  listFiles: '200',
  detachFile: { active: '200', archived: '200', terminated: CONFLICT },
  getFile: '200',
  deleteFile: { active: '200', archived: '200', terminated: CONFLICT, draft: '200' },
  getFileLink: { active: '200', archived: '200', terminated: '200', draft: GONE },
  readContent: { active: '200', archived: '200', terminated: '200', draft: GONE },
};

/** Returns 404 if the thing is not visible, then 403 without access, then the answer for the state, then the outcome. */
function expectedAnswer(caller: MatrixCaller, agent: MatrixAgent, thing: Thing | null, route: Route): string {
  if (thing !== null && !VISIBLE[thing.what]) return GONE;
  if (STATE_SAYS[agent.state] === GONE) return GONE;
  const column = (agent.organization === 'acme' ? 0 : 2) + (agent.access === 'organization' ? 0 : 1);
  if (!MAY_USE[caller.name]![column]) return '403 forbidden';
  const outcome = OUTCOMES[route.operation];
  // "Their owners can still delete them."
  const refusal = route.operation === 'deleteThread' ? null : STATE_SAYS[agent.state];
  return refusal ?? (typeof outcome === 'string' ? outcome : outcome[thing!.lifecycle]!);
}

/** A Thread or draft, and a caller that requests it. */
interface Made {
  caller: MatrixCaller;
  thing: Thing;
}

interface Cell {
  caller: MatrixCaller;
  agent: MatrixAgent;
  thing: Thing | null;
  route: Route;
  expected: string;
  /** Whether the ids are sent in lower case, in every other cell. Both cases are valid. */
  isLower: boolean;
}

let world: MatrixWorld;
let things: Made[];
/** All cells, and the tested ones. The gate tests one for each caller, kind of Thread or file, route and outcome. */
let every: Cell[];
let cells: Cell[];
const failures: string[][] = [];
const counts = { cells: 0, accepted: 0 };

beforeAll(async () => {
  world = await MatrixWorld.make();
  things = await makeThings();
  await world.enterStates();
  const all = [...agentCells(), ...things.flatMap(({ caller, thing }) => thingCells(caller, thing))];
  every = all.map((cell, i) => ({ ...cell, isLower: i % 2 === 1 }));
  cells = isNight ? every : onePerOutcome(every);
}, 60_000);

afterAll(() => world.stop());

/** Fails the test with one table of all its findings. */
afterEach(() => {
  const found = failures.splice(0);
  if (found.length > 0) throw new Error(tableOf(found));
});

function onePerOutcome<C extends Cell>(all: C[]): C[] {
  const byOutcome = new Map<string, C>();
  for (const cell of all)
    byOutcome.set([cell.caller.name, cell.thing?.what, routeName(cell.route), cell.expected].join(), cell);
  return [...byOutcome.values()];
}

function ownerOf({ kind, personId, tokenId }: MatrixCaller): Owner {
  return kind === 'person' ? { personId, serviceTokenId: null } : { personId: null, serviceTokenId: tokenId };
}

type Wanted = Pick<Thing, 'agent' | 'owner' | 'lifecycle' | 'what'> & { askers: MatrixCaller[] };

/** Creates, for every agent, the things of others, which every caller requests, and the things of each caller. */
async function makeThings(): Promise<Made[]> {
  const { callers, otherPersonId: personId, otherServiceTokenId: serviceTokenId } = world;
  const wanted: Wanted[] = [];
  for (const agent of world.agents) {
    const add = (askers: MatrixCaller[], owner: Owner, lifecycle: Thing['lifecycle'], what: string) =>
      wanted.push({ askers, agent, owner, lifecycle, what });
    const ofPerson = { personId, serviceTokenId: null };
    const ofService = { personId: null, serviceTokenId };
    // The access mode of an agent does not affect what its Threads accept. Once for each agent state is enough.
    const hasAll = agent.access === 'organization';
    add(callers, ofPerson, 'active', 'of another person');
    if (hasAll) add(callers, ofPerson, 'terminated', 'of another person, TERMINATED');
    add(callers, ofService, 'active', 'of another service token');
    add(callers, { personId, serviceTokenId }, 'active', 'of others, attributed');
    add(callers, ofPerson, 'draft', 'draft of another person');
    add(callers, ofService, 'draft', 'draft of another service token');
    for (const caller of callers.filter(({ kind }) => kind !== 'operator')) {
      const owner = ownerOf(caller);
      const both = { personId: owner.personId ?? personId, serviceTokenId: owner.serviceTokenId ?? serviceTokenId };
      add([caller], owner, 'active', 'own');
      if (hasAll) add([caller], owner, 'archived', 'own, archived');
      if (hasAll) add([caller], owner, 'terminated', 'own, TERMINATED');
      add([caller], both, 'active', 'attributed to or by the caller');
      add([caller], owner, 'draft', 'own draft');
    }
  }
  const made: Made[][] = [];
  await each((isNight ? wanted : onlyAsked(wanted)).entries(), async ([i, { askers, ...rest }]) => {
    const thing = await world.makeThing(rest);
    made[i] = askers.map((caller) => ({ caller, thing }));
  });
  return made.flat();
}

/** Returns the things that a cell of the gate needs, and all things of the first agent. */
function onlyAsked(wanted: Wanted[]): Wanted[] {
  const cells = wanted.flatMap((one) => {
    const thing = { ...one, ...unknownIds() };
    return one.askers.flatMap((caller) => thingCells(caller, thing).map((cell) => ({ ...cell, one, isLower: false })));
  });
  const asked = new Set(onePerOutcome(cells).map(({ one }) => one));
  return wanted.filter((one) => one.agent === world.agents[0] || asked.has(one));
}

function agentCells(): Omit<Cell, 'isLower'>[] {
  const routes = ROUTES.filter(({ of }) => of === 'agents');
  return world.callers.flatMap((caller) =>
    world.agents.flatMap((agent) =>
      routes.map((route) => ({
        caller,
        agent,
        thing: null,
        route,
        expected: expectedAnswer(caller, agent, null, route),
      })),
    ),
  );
}

function thingCells(caller: MatrixCaller, thing: Thing): Omit<Cell, 'isLower'>[] {
  const { agent } = thing;
  const routes = ROUTES.filter(({ of }) => of === 'files' || (of === 'threads' && thing.lifecycle !== 'draft'));
  return routes.map((route) => ({
    caller,
    agent,
    thing,
    route,
    expected: expectedAnswer(caller, agent, thing, route),
  }));
}

const isRead = ({ method }: Route) => method === 'GET' || method === 'HEAD';
const isAccepted = ({ expected }: Cell) => expected.startsWith('2');
const isListed = ({ what, lifecycle }: Thing) => VISIBLE[what] && lifecycle !== 'draft';
const idsOf = ({ agent, thing }: Pick<Cell, 'agent' | 'thing'>): Ids => {
  const { threadId, runId, fileId } = thing ?? unknownIds();
  return { agentId: agent.id, threadId, runId, fileId };
};
const routeName = ({ operation, method }: Route) => (method === 'HEAD' ? `${operation} (HEAD)` : operation);

/** Runs `act` for each item, 24 at a time. */
async function each<T>(items: Iterable<T>, act: (item: T) => Promise<void>): Promise<void> {
  const queue = [...items].values();
  const work = async () => {
    for (const item of queue) await act(item);
  };
  await Promise.all(Array.from({ length: 24 }, work));
}

/** Sends the request of the cell. Records a failure unless the answer and its content are as expected. */
async function check(cell: Cell, ids = idsOf(cell)): Promise<void> {
  const { caller, agent, thing, route, expected, isLower } = cell;
  const answer = await world.ask(route, isLower ? inLowerCase(ids) : ids, `Bearer ${caller.token}`).catch(String);
  const wanted = route.method === 'HEAD' ? expected.split(' ')[0]! : expected;
  const got = typeof answer === 'string' ? answer : answerOf(answer) + (await oddity(cell, ids, answer));
  counts.cells++;
  if (got.startsWith('2')) counts.accepted++;
  const name = isLower ? `${routeName(route)}, ids in lower case` : routeName(route);
  if (got !== wanted) failures.push([caller.name, agent.name, thing?.what ?? '-', name, wanted, got]);
}

function inLowerCase(ids: Ids): Ids {
  return Object.fromEntries(
    Object.entries(ids).map(([name, id]) => [name, String(id).toLowerCase()]),
  ) as unknown as Ids;
}

/** Describes what is wrong with an answer besides status and code. A 404 must equal that for a missing thing. */
async function oddity(cell: Cell, ids: Ids, answer: Answered): Promise<string> {
  if (answer.status === 404) return difference(cell, answer);
  const shows = cell.route.shows(ids);
  return answer.status < 300 && !answer.text.includes(shows) ? `, without ${shows}: ${answer.text}` : '';
}

const answerOf = ({ status, code }: Answered) => (code === null ? String(status) : `${status} ${code}`);

const missing = new Map<string, Promise<Answered>>();

/** Describes how a 404 differs from that for a thing that never existed, with the same caller and route. */
async function difference({ caller, route }: Cell, answer: Answered): Promise<string> {
  const key = `${caller.name} ${routeName(route)}`;
  if (!missing.has(key)) missing.set(key, world.ask(route, unknownIds(), `Bearer ${caller.token}`));
  const [a, b] = [shown(answer), shown((await missing.get(key))!)];
  return a === b ? '' : `, but ${a} where nothing is ${b}`;
}

/** The headers that differ between any two answers. */
const CHANGING = /^(date|x-request-id|ratelimit-.*)$/;

/** Returns everything in an answer that a caller can compare. */
function shown({ status, headers, text }: Answered): string {
  const told = [...headers].map(([name, value]) => (CHANGING.test(name) ? name : `${name}: ${value}`));
  return JSON.stringify([status, told, text]);
}

const HEADINGS = ['caller', 'agent', 'Thread or file', 'route', 'expected', 'got'];

/** Formats the first hundred failures, and counts all by each column. */
function tableOf(rows: string[][]): string {
  const shownRows = [HEADINGS, ...rows.slice(0, 100)];
  const widths = HEADINGS.map((_, i) => Math.max(...shownRows.map((row) => row[i]!.length)));
  const lines = shownRows.map((row) =>
    row
      .map((text, i) => text.padEnd(widths[i]!))
      .join(' | ')
      .trimEnd(),
  );
  const sums = HEADINGS.map((heading, i) => {
    const numbers = new Map<string, number>();
    for (const row of rows) numbers.set(row[i]!, (numbers.get(row[i]!) ?? 0) + 1);
    const shares = [...numbers].slice(0, 20).map(([text, number]) => `${text} ${number}×`);
    return `${heading}: ${shares.join('; ')}`;
  });
  return [`${rows.length} of ${counts.cells} cells so far are wrong.`, ...sums, ...lines].join('\n');
}

/** Returns a thing that the owner requests from the first agent, which is live. */
const ofOwner = (what: string): Thing =>
  things.find((one) => one.caller.name === 'owner' && one.thing.what === what)!.thing;

test('the matrix has every operation', () => {
  expect([...SENT_OPERATIONS].sort()).toEqual(Object.keys(operations).sort());
});

test('reads and refused writes return the expected answer, and change nothing', async () => {
  const before = await world.contents();
  await each(
    cells.filter(({ route }) => isRead(route)),
    (cell) => check(cell),
  );
  await each(
    cells.filter((cell) => !isRead(cell.route) && !isAccepted(cell)),
    (cell) => check(cell),
  );
  expect(await world.contents()).toEqual(before);
}, 180_000);

test('requests for things that never existed return 404 to every caller, and change nothing', async () => {
  const before = await world.contents();
  const agent: MatrixAgent = { ...world.agents[0]!, name: 'none' };
  const nothing = world.callers.flatMap((caller) =>
    ROUTES.filter(({ of }) => of !== 'all').map((route) => {
      return { caller, agent, thing: null, route, expected: GONE, isLower: false };
    }),
  );
  await each(nothing, (cell) => check(cell, unknownIds()));
  expect(await world.contents()).toEqual(before);
});

test('an invalid token returns 401 for existing and missing things, and changes nothing', async () => {
  const before = await world.contents();
  const thing = ofOwner('own');
  const there = idsOf({ agent: thing.agent, thing });
  const asked = world.nobodies.flatMap((invalid) =>
    ROUTES.flatMap((route) => [there, unknownIds()].map((ids) => ({ invalid, route, ids }))),
  );
  const bodies = new Set<string>();
  await each(asked, async ({ invalid: [name, authorization], route, ids }) => {
    const answer = await world.ask(route, ids, authorization);
    counts.cells++;
    const got = `${answerOf(answer)} ${answer.headers.get('www-authenticate')}`;
    const wanted = `401 ${route.method === 'HEAD' ? '' : 'unauthenticated '}Bearer`;
    if (route.method !== 'HEAD') bodies.add(shown(answer));
    const what = ids === there ? 'own' : 'none';
    if (got !== wanted) failures.push([name, thing.agent.name, what, routeName(route), wanted, got]);
  });
  expect([...bodies]).toHaveLength(1);
  expect(await world.contents()).toEqual(before);
}, 30_000);

test('the list of an Agent has exactly the Threads that its caller may see', async () => {
  const route = ROUTES.find(({ operation }) => operation === 'listThreads')!;
  const lists = every.filter((cell) => cell.route === route && isAccepted(cell));
  await each(lists, async ({ caller, agent }) => {
    const { text } = await world.ask(route, { ...unknownIds(), agentId: agent.id }, `Bearer ${caller.token}`);
    const listed = (JSON.parse(text) as { threads: { id: string }[] }).threads.map(({ id }) => id);
    const own = things.filter((one) => one.caller === caller && one.thing.agent === agent && isListed(one.thing));
    expect([caller.name, listed.sort()]).toEqual([caller.name, own.map(({ thing }) => thing.threadId).sort()]);
  });
  expect(lists.length).toBeGreaterThan(10);
});

test('the list over all Agents has exactly the Threads that its caller may read', async () => {
  const route = ROUTES.find(({ operation }) => operation === 'listAllThreads')!;
  const read = ROUTES.find(({ operation }) => operation === 'getThread')!;
  for (const caller of world.callers) {
    const answer = await world.ask(route, unknownIds(), `Bearer ${caller.token}`);
    const listed = (JSON.parse(answer.text) as { threads: { id: string }[] }).threads.map(({ id }) => id);
    const readable = things.filter(({ caller: asker, thing }) => {
      return asker === caller && isListed(thing) && expectedAnswer(caller, thing.agent, thing, read) === '200';
    });
    expect([caller.name, listed.sort()]).toEqual([caller.name, readable.map(({ thing }) => thing.threadId).sort()]);
  }
});

test('a hidden id in a request with a visible one gets the answer for a missing id', async () => {
  const before = await world.contents();
  const [own, other, draft] = [ofOwner('own'), ofOwner('of another person'), ofOwner('draft of another person')];
  const { token } = world.callers[0]!;
  const withBody = (operation: OperationName, body: (ids: Ids) => object): ((ids: Ids) => Route) => {
    const route = ROUTES.find((one) => one.operation === operation)!;
    return (ids) => ({ ...route, body: JSON.stringify(body(ids)), contentType: 'application/json' });
  };
  const bare = (operation: OperationName) => () => ROUTES.find((one) => one.operation === operation)!;
  const resources = ({ fileId }: Ids) => [{ type: 'file', file_id: fileId }];
  const asked: [expected: string, (ids: Ids) => Route][] = [
    [GONE, bare('getRun')],
    [GONE, bare('retryRun')],
    [GONE, bare('detachFile')],
    [GONE, withBody('sendEvents', ({ runId }) => ({ events: [{ type: 'user_interrupt', runId }] }))],
    ['400 invalid_request', withBody('createThread', (ids) => ({ userId: 'u', resources: resources(ids) }))],
    [
      '400 invalid_request',
      withBody('sendEvents', (ids) => ({ events: [{ type: 'user_message', text: 'hi', resources: resources(ids) }] })),
    ],
    ['400 invalid_request', withBody('attachFile', ({ fileId }) => ({ fileId }))],
  ];
  for (const [expected, route] of asked) {
    const answers = await Promise.all(
      [other, draft, unknownIds()].map(async ({ runId, fileId }) => {
        const ids = { agentId: own.agent.id, threadId: own.threadId, runId, fileId };
        const answer = await world.ask(route(ids), ids, `Bearer ${token}`);
        return [answerOf(answer), shown(answer).replaceAll(fileId, 'FILE').replaceAll(runId, 'RUN')];
      }),
    );
    const { operation } = route({ ...own, agentId: own.agent.id });
    expect([operation, ...answers.map(([answer]) => answer)]).toEqual([operation, expected, expected, expected]);
    expect(new Set(answers.map(([, all]) => all)).size).toBe(1);
  }
  expect(await world.contents()).toEqual(before);
});

test('an interrupt of an ended Run does not bypass the checks', async () => {
  const before = await world.contents();
  const route = ROUTES.find(({ operation }) => operation === 'sendEvents')!;
  const answers: [string, string][] = [];
  for (const what of ['own', 'own, archived', 'own, TERMINATED', 'of another person']) {
    const thing = ofOwner(what);
    const ids = idsOf({ agent: thing.agent, thing });
    const body = JSON.stringify({ events: [{ type: 'user_interrupt', runId: ids.runId }] });
    // A key would be stored with the answer.
    const answer = await world.ask({ ...route, body, hasKey: false }, ids, `Bearer ${world.callers[0]!.token}`);
    answers.push([what, answerOf(answer)]);
  }
  expect(answers).toEqual([
    ['own', '200'],
    ['own, archived', CONFLICT],
    ['own, TERMINATED', CONFLICT],
    ['of another person', GONE],
  ]);
  expect(await world.contents()).toEqual(before);
});

// Each write has its own Thread or draft. Runs last, because it changes the world.
test('allowed writes succeed', async () => {
  const writes = cells.filter((cell) => !isRead(cell.route) && isAccepted(cell));
  await each(writes, async (cell) => {
    const { thing } = cell;
    await check(thing === null ? cell : { ...cell, thing: await world.makeThing(thing) });
  });
}, 60_000);

test('all cells were tested', () => {
  expect(counts).toEqual(isNight ? { cells: 24_756, accepted: 888 } : { cells: 5_026, accepted: 525 });
});
