import type { BuiltRequest } from './build-request.ts';
import type { WireAnswer } from './connection.ts';
import type { Operation } from './document.ts';
import { CALLERS } from './headers.ts';
import type { RequestPlan } from './requests.ts';
import type { Pick } from './values.ts';

interface KnownThread {
  id: string;
  owner: string;
  runs: string[];
  files: string[];
  events: string[];
  /** Questions that a Run has asked: what a permission decision names. */
  requests: string[];
}

/** More of each is forgotten, the oldest first, so that ids come again. */
const MEMORY = 60;

/**
 * What exists, as far as callers were told: the ids that requests are made with. It learns from answers, by the names that
 * the contract gives to things, so that a new route needs nothing here.
 */
export class World {
  private readonly threads = new Map<string, KnownThread>();
  /** By caller: files that belong to no Thread yet. */
  private readonly drafts = new Map<string, string[]>();
  /** By operation. */
  private readonly cursors = new Map<string, string[]>();

  constructor(private readonly agentIds: readonly string[]) {}

  count(owner: string): number {
    return this.threadsOf(owner).length;
  }

  countDrafts(owner: string): number {
    return this.drafts.get(owner)?.length ?? 0;
  }

  /** An id for what the plan leaves open: mostly the caller's own. Null: there is none yet. */
  resolve({ $pick, n }: Pick, plan: RequestPlan): string | null {
    const inPath = plan.path.some((piece) => typeof piece === 'object' && piece.$pick === $pick);
    switch (camelCase($pick)) {
      case 'agentId':
        // The first is the one that answers.
        return this.agentIds[n % 3 < 2 ? 0 : n % this.agentIds.length] ?? null;
      case 'threadId':
        return this.threadOf(plan)?.id ?? null;
      case 'runId':
        return oneOf(this.threadOf(plan)?.runs, n);
      case 'fileId':
        return inPath ? this.fileOf(plan, n) : oneOf(this.draftsOf(plan, n), n);
      case 'after':
      case 'before':
      case 'lastEventId':
        return oneOf(this.threadOf(plan)?.events, n);
      case 'cursor':
        return oneOf(this.cursors.get(plan.operation.name), n);
      case 'requestId':
        return oneOf(this.threadOf(plan)?.requests, n);
      default:
        return null;
    }
  }

  /** Takes note of what an answer of success tells. */
  learn({ plan, target }: BuiltRequest, { status, body, headers }: WireAnswer): void {
    if (status >= 300 || plan.method === 'HEAD' || !CALLERS.includes(plan.caller)) return;
    const inPath = /\/threads\/(\w{26})/.exec(target)?.[1]?.toUpperCase();
    if (plan.method === 'DELETE') return this.forget(target);
    if (!headers['content-type']?.startsWith('application/json')) return;
    const answer = JSON.parse(body.toString()) as Answer;
    for (const { id } of [...(answer.threads ?? []), ...(answer.thread ? [answer.thread] : [])])
      this.know(id, plan.caller);
    const thread = this.threads.get(answer.thread?.id ?? inPath ?? '');
    const file = answer.file?.id;
    if (file !== undefined && inPath === undefined && plan.method === 'POST') this.keepDraft(plan.caller, file);
    if (typeof answer.nextCursor === 'string') keep(this.cursors, plan.operation.name, answer.nextCursor);
    if (thread) learnOf(thread, answer);
  }

  private know(id: string, owner: string): void {
    if (this.threads.has(id)) return;
    this.threads.set(id, { id, owner, runs: [], files: [], events: [], requests: [] });
    const own = this.threadsOf(owner);
    if (own.length > MEMORY) this.threads.delete(own[0]!.id);
  }

  private keepDraft(owner: string, id: string): void {
    keep(this.drafts, owner, id);
  }

  private forget(target: string): void {
    const last = target.split('?')[0]!.split('/').at(-1)!.toUpperCase();
    this.threads.delete(last);
    for (const drafts of this.drafts.values()) remove(drafts, last);
    for (const { files } of this.threads.values()) remove(files, last);
  }

  /** The same one for all picks of a plan: its Run, its file and its events belong together. */
  private threadOf({ path, caller }: RequestPlan): KnownThread | undefined {
    const picks = path.filter((piece) => typeof piece === 'object');
    const n = picks.find(({ $pick }) => $pick === 'threadId')?.n ?? 0;
    const needs = picks.map(({ $pick }) => $pick);
    const all = n % 12 === 0 ? [...this.threads.values()] : this.threadsOf(caller);
    const fitting = all.filter(
      ({ runs, files }) =>
        (!needs.includes('runId') || runs.length > 0) && (!needs.includes('fileId') || files.length > 0),
    );
    const threads = fitting.length > 0 ? fitting : all;
    return threads[n % threads.length];
  }

  private threadsOf(owner: string): KnownThread[] {
    return [...this.threads.values()].filter((thread) => thread.owner === owner);
  }

  private draftsOf({ caller }: RequestPlan, n: number): string[] {
    return this.drafts.get(n % 12 === 0 ? 'other' : caller) ?? [];
  }

  private fileOf(plan: RequestPlan, n: number): string | null {
    if (plan.path.some((piece) => typeof piece === 'object' && piece.$pick === 'threadId')) {
      return oneOf(this.threadOf(plan)?.files, n);
    }
    const attached = this.threadsOf(n % 12 === 0 ? 'other' : plan.caller).flatMap(({ files }) => files);
    return (
      oneOf(n % 3 === 0 && attached.length > 0 ? this.draftsOf(plan, n) : attached, n) ??
      oneOf(this.draftsOf(plan, n), n)
    );
  }
}

interface Known {
  id: string;
}

/** What answers of any operation may hold. */
interface Answer {
  thread?: Known;
  threads?: Known[];
  run?: Known | null;
  runs?: Known[];
  file?: Known;
  files?: Known[];
  events?: { id?: string; type: string; content?: string; run?: Known | null }[];
  nextCursor?: unknown;
}

function learnOf(thread: KnownThread, { run, runs = [], file, files = [], events = [] }: Answer): void {
  for (const known of [run, ...runs, ...events.map((event) => event.run)]) if (known) add(thread.runs, known.id);
  for (const known of [file, ...files]) if (known) add(thread.files, known.id);
  for (const { id, type, content } of events) {
    if (id !== undefined) add(thread.events, id);
    if (type === 'tool.confirmation.required' && content !== undefined) add(thread.requests, content);
  }
}

function keep(lists: Map<string, string[]>, key: string, id: string): void {
  const list = lists.get(key) ?? [];
  lists.set(key, list);
  add(list, id);
}

function add(list: string[], id: string): void {
  if (!list.includes(id)) list.push(id);
  if (list.length > MEMORY) list.shift();
}

function remove(list: string[], id: string): void {
  const at = list.indexOf(id);
  if (at !== -1) list.splice(at, 1);
}

const oneOf = (ids: string[] | undefined, n: number): string | null =>
  ids && ids.length > 0 ? (ids[Math.floor(n / 12) % ids.length] ?? null) : null;

/** `file_id`, `Last-Event-ID`: as properties and parameters are called. */
function camelCase(name: string): string {
  const words = name.split(/[-_]/);
  if (words.length === 1) return name;
  return words
    .map((word, i) => (i === 0 ? word.toLowerCase() : word[0]!.toUpperCase() + word.slice(1).toLowerCase()))
    .join('');
}

/** Requests that make what others need, as plans like all others; only of operations that the document has. */
export function planTo(
  operations: Operation[],
  name: string,
  value: unknown,
  path: (string | Pick)[],
): RequestPlan | null {
  const operation = operations.find((candidate) => candidate.name === name);
  if (operation === undefined) return null;
  return {
    operation,
    method: operation.method,
    path,
    query: [],
    headers: [],
    caller: 'own',
    body: value === undefined ? null : { kind: 'json', value, twist: 'none', n: 0 },
    contentType: undefined,
    chunked: false,
    transport: 'none',
    api: 0,
    expected: 'anything',
    why: [],
  };
}

/** A large body to ids of nothing: it is read all the same. Null where the operation takes no JSON. */
export function planToSendLarge(operation: Operation, twist: string, api: number): RequestPlan | null {
  if (operation.body?.content['application/json'] === undefined) return null;
  const path = operation.path.replaceAll(/\{\w+\}/g, '0'.repeat(26));
  const plan = planTo([operation], operation.name, {}, [path]);
  return plan && { ...plan, body: { kind: 'json', value: {}, twist, n: 0 }, api };
}
