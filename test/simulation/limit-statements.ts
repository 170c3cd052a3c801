import { NO_LOCKS, type Locks, type Tables, type StoredWorkItem } from './tables.ts';

type Row = Record<string, unknown>;

const isTaking = ({ state }: StoredWorkItem): boolean => state === 'leased';
/** What has been let in and is not claimed yet. */
const hasPlace = ({ state, limitedBy }: StoredWorkItem): boolean => state === 'ready' && limitedBy !== null;

/** refuse-beyond-limits.sql; the locks are the transaction's. */
export function refuseBeyondLimits(tables: Tables, values: unknown[]): Row[] {
  const [runId, organizationId, agentId] = values as string[];
  const agent = tables.agents.get(agentId!);
  const run = tables.work.get(runId!);
  if (agent === undefined || run === undefined) return [];
  const organization = tables.organizations.get(organizationId!) ?? capOf(values[4]);
  if (tables.transaction) tables.transaction.checked = { agent: agent.runs, organization };
  const limitedBy = refusalOf(tables, run, values);
  if (locksOfRefusal(tables, values).runIds.length > 0) {
    // Uses the state at the statement, because the pause may have ended when the transaction commits.
    const queueLeft = queueLeftOf(tables, run);
    tables.write(() => makeLimited(tables, run.runId, limitedBy!, queueLeft));
  }
  return [{ limitedBy }];
}

/** The locks of refuse-beyond-limits: the work item of a refused Run that was about to be enqueued. */
export function locksOfRefusal(tables: Tables, values: unknown[]): Locks {
  const [runId, , , dispatch] = values;
  const run = tables.work.get(runId as string);
  if (run === undefined || run.state !== 'ready' || run.dispatch !== dispatch) return NO_LOCKS;
  return refusalOf(tables, run, values) === null ? NO_LOCKS : { threadId: null, runIds: [run.runId] };
}

/** Returns the limit that prevents the Run's claim, or null. */
function refusalOf(tables: Tables, run: StoredWorkItem, values: unknown[]): StoredWorkItem['limitedBy'] {
  const [, organizationId, agentId] = values as string[];
  const agentRuns = tables.agents.get(agentId!)?.runs ?? null;
  const organizationRuns = tables.organizations.get(organizationId!) ?? capOf(values[4]);
  if (agentRuns === null && organizationRuns === null) return null;
  const isNewcomer = run.attempt === 0 && !hasPlace(run);
  const ofOrganization = [...tables.work.values()].filter((row) => row.organizationId === organizationId);
  const ofAgent = ofOrganization.filter((row) => row.agentId === agentId);
  const passes = tables.has('newcomers pass those who wait');
  const isFull = (
    rows: StoredWorkItem[],
    runs: number | null,
    isWaiting: (row: StoredWorkItem) => boolean,
  ): boolean => {
    if (runs === null) return false;
    const taken = rows.filter((row) => isTaking(row) || (isNewcomer && !passes && hasPlace(row))).length;
    return taken >= runs || (isNewcomer && !passes && rows.some((row) => row.state === 'limited' && isWaiting(row)));
  };
  const waitsFor =
    (whose: StoredWorkItem['limitedBy']) =>
    (row: StoredWorkItem): boolean =>
      row.limitedBy === whose;
  if (isFull(ofAgent, agentRuns, waitsFor('agent'))) return 'agent';
  return isFull(ofOrganization, organizationRuns, waitsFor('organization')) ? 'organization' : null;
}

/** Returns whether the limits allow a claim of the ready Run now. `cap`: the limit of an organization that has none of its own. */
export function isClaimable(tables: Tables, run: StoredWorkItem, cap: number | null): boolean {
  const { runId, organizationId, agentId, dispatch } = run;
  return refusalOf(tables, run, [runId, organizationId, agentId, dispatch, cap]) === null;
}

/** The limit of an organization that has none of its own. */
const capOf = (value: unknown): number | null => (value ?? null) as number | null;

/** Who was claimed before comes first. */
const inLine = (a: StoredWorkItem, b: StoredWorkItem): number =>
  Number(a.attempt === 0) - Number(b.attempt === 0) || a.since - b.since;

/** find-limited-organizations.sql. */
export function findLimitedOrganizations(tables: Tables): Row[] {
  const ids = new Set<string>();
  for (const { state, organizationId } of tables.work.values()) if (state === 'limited') ids.add(organizationId);
  return [...ids].toSorted().map((id) => ({ id }));
}

/** admit-limited-runs.sql. */
export function admitLimitedRuns(tables: Tables, [organizationId, limit, cap]: unknown[]): Row[] {
  if (tables.has('nothing lets in what waits for a limit')) return [];
  const all = [...tables.work.values()].filter((row) => row.organizationId === organizationId);
  const roomIn = (rows: StoredWorkItem[], runs: number | null): number => {
    const taken = rows.filter((row) => isTaking(row) || hasPlace(row)).length;
    return Math.max(0, Math.min(runs === null ? Infinity : runs - taken, limit as number));
  };
  const limited = all.filter(({ state }) => state === 'limited').toSorted(inLine);
  const first = [...new Set(limited.map(({ agentId }) => agentId))].flatMap((agentId) => {
    const room = roomIn(
      all.filter((row) => row.agentId === agentId),
      tables.agents.get(agentId)?.runs ?? null,
    );
    return limited.filter((row) => row.agentId === agentId).slice(0, room);
  });
  const admitted = first
    .toSorted(inLine)
    .slice(0, roomIn(all, tables.organizations.get(organizationId as string) ?? capOf(cap)))
    .filter(({ runId }) => !tables.isLocked(runId));
  for (const row of admitted) {
    const left = tables.has('the queue time of a limited Run goes on') ? 1 : row.queueLeft!;
    Object.assign(row, { state: 'ready', dueAt: tables.now + left, queueLeft: null });
  }
  if (admitted.length > 0) tables.options.onTouched();
  return admitted.map(({ runId, threadId, dispatch }) => ({ runId, threadId, dispatch }));
}

/** limit-newcomers.sql. */
export function limitNewcomers(tables: Tables, [organizationId, limit]: unknown[]): number {
  if (tables.has('newcomers pass those who wait')) return 0;
  const lines = [...tables.work.values()].filter(({ state }) => state === 'limited');
  const newcomers = [...tables.work.values()].flatMap((row) => {
    if (row.organizationId !== organizationId || row.attempt > 0) return [];
    if (row.state !== 'ready' || row.limitedBy !== null || tables.isLocked(row.runId)) return [];
    const line = lines.find(
      ({ organizationId, agentId, limitedBy }) =>
        organizationId === row.organizationId && (limitedBy !== 'agent' || agentId === row.agentId),
    );
    return line === undefined ? [] : [{ row, limitedBy: line.limitedBy! }];
  });
  const chosen = newcomers.slice(0, limit as number);
  for (const { row, limitedBy } of chosen) makeLimited(tables, row.runId, limitedBy, queueLeftOf(tables, row));
  return chosen.length;
}

/** While the queue is paused or away its time does not count. */
function queueLeftOf({ now, pauses }: Tables, { since, dueAt }: StoredWorkItem): number {
  const pausedAt = Math.min(...[...pauses.values()].map((at) => at ?? Infinity));
  return (dueAt ?? 0) - Math.min(now, Math.max(since, pausedAt));
}

function makeLimited(tables: Tables, runId: string, limitedBy: 'agent' | 'organization', queueLeft: number): void {
  const row = tables.work.get(runId);
  // A delete waits for the row, and then it is gone all the same.
  if (row === undefined) return;
  Object.assign(row, {
    state: 'limited',
    limitedBy,
    queueLeft,
    dueAt: null,
  });
  tables.options.onTouched();
}
