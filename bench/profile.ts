import type { Profiler, Runtime } from 'node:inspector';
import { Session } from 'node:inspector/promises';

const SAMPLE_EVERY_US = 500;
const SHOWN_FUNCTIONS = 20;
const SHOWN_PARTS = 12;
const SHOWN_OWN = 25;

/** Starts a CPU profile of this process; answers how to end it. */
export async function startProfile(): Promise<() => Promise<Profiler.Profile>> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: SAMPLE_EVERY_US });
  await session.post('Profiler.start');
  return async () => {
    const { profile } = await session.post('Profiler.stop');
    session.disconnect();
    return profile;
  };
}

export interface ProfileSummary {
  /** How much of the time the process was not idle, 0..1. */
  busy: number;
  /** Self time by function, the highest first; shares of the busy time. */
  functions: Share[];
  /** Self time by package, lib or kind of native work. */
  parts: Share[];
  /** Time of our own functions with all that they call. Work behind an `await` counts as its caller's only where V8 says so. */
  own: Share[];
}

interface Share {
  name: string;
  share: number;
}

/** Where the time went. */
export function summarise({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): ProfileSummary {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, describe(callFrame)]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const functions = new Tally();
  const parts = new Tally();
  const own = new Tally();
  let total = 0;
  let busy = 0;
  samples.forEach((id, i) => {
    const time = timeDeltas[i] ?? 0;
    const frame = frames.get(id);
    total += time;
    if (frame === undefined || IDLE.includes(frame.shown)) return;
    busy += time;
    functions.add(frame.shown, time);
    parts.add(frame.part, time);
    const ours = new Set<string>();
    for (let at: number | undefined = id; at !== undefined; at = callers.get(at)) {
      const caller = frames.get(at);
      if (caller?.isOwn) ours.add(caller.shown);
    }
    for (const shown of ours) own.add(shown, time);
  });
  const shares = (tally: Tally): Share[] => tally.highest(busy);
  return { busy: busy / total, functions: shares(functions), parts: shares(parts), own: shares(own) };
}

/** `dispatch` is the inspector, starting this profile. */
const IDLE = ['(idle)', 'dispatch'];

class Tally {
  private readonly times = new Map<string, number>();

  add(name: string, time: number): void {
    this.times.set(name, (this.times.get(name) ?? 0) + time);
  }

  highest(of: number): Share[] {
    const shares = [...this.times].map(([name, time]) => ({ name, share: time / of }));
    return shares.sort((a, b) => b.share - a.share);
  }
}

interface Frame {
  /** Function and place. */
  shown: string;
  /** The package or lib; of native work the function itself. */
  part: string;
  isOwn: boolean;
}

function describe({ functionName, url, lineNumber }: Runtime.CallFrame): Frame {
  const name = functionName || '(anonymous)';
  const { part, place } = placeOf(url);
  const shown = place === '' ? name : `${name} ${place}:${lineNumber + 1}`;
  return { shown, part: part || name, isOwn: /^(libs|apps)\//.test(part) };
}

/** The package or lib that a script belongs to, and the script in short; both empty for native work. */
function placeOf(url: string): { part: string; place: string } {
  if (url === '') return { part: '', place: '' };
  if (url.startsWith('node:')) return { part: url.startsWith('node:internal') ? 'node:internal' : url, place: url };
  const path = url.slice(url.lastIndexOf('/node_modules/') + 1);
  const [, name] = /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path) ?? [];
  if (name !== undefined) return { part: name, place: path.slice('node_modules/'.length) };
  const [, own = url, part = own] = /\/dist\/(((?:libs|apps)\/[^/]+|bench)\/.*)$/.exec(url) ?? [];
  return { part, place: own };
}

/** As text, for people. */
export function formatSummary(title: string, { busy, functions, parts, own }: ProfileSummary): string {
  const line = ({ name, share }: Share) => `  ${(share * 100).toFixed(1).padStart(5)} %  ${name}`;
  return [
    `${title}: busy ${(busy * 100).toFixed(0)} % of the time; shares are of that`,
    ' self time by part:',
    ...parts.slice(0, SHOWN_PARTS).map(line),
    ' self time by function:',
    ...functions.slice(0, SHOWN_FUNCTIONS).map(line),
    ' our own functions, with all that they call:',
    ...own.slice(0, SHOWN_OWN).map(line),
  ].join('\n');
}
