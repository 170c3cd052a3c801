import { setTimeout as sleep } from 'node:timers/promises';
import { ScriptedProvider } from '../provider/scripted-provider.ts';
import { ATTACKS, type Aim, type Attack, type Target } from './attacks.ts';
import { startEndlessServer } from './endless-server.ts';
import { HOSTILE_SCRIPTS } from './scripts.ts';

/** Where the hostile tenant's model and tool server listen. The first message of the process. */
export interface Listening {
  providerUrl: string;
  endlessUrl: string;
  slowUrl: string;
}

/** The order to attack, and for how long. Milliseconds. */
export interface Order {
  target: Target;
  forMs: number;
}

export interface AttackReport {
  name: string;
  begun: number;
  /** How many beginnings were answered so that they count as tried. */
  tried: number;
  /** The longest time without the beginning of one that was tried. Milliseconds. */
  longestGapMs: number;
  /** Answers by outcome; `none` counts connections that ended without one. */
  answers: Record<string, number>;
}

/** The last message of the process. */
export interface Report {
  attacks: AttackReport[];
  cpuMs: number;
}

/** How long answers are waited for after the last beginning. */
const LAST_ANSWERS_MS = 8_000;
const REFUSED_MS = 500;
/** The first address of the attacks: 127.0.0.10 and so on. The neighbour calls from 127.0.0.1. */
const FIRST_ADDRESS = 10;

const [, , apiKey = ''] = process.argv;
const provider = await ScriptedProvider.start({ apiKey, scripts: HOSTILE_SCRIPTS });
const endless = await startEndlessServer();
process.on('message', (order: Order) => void attack(order));
process.on('disconnect', () => process.exit());
const { url: endlessUrl, slowUrl } = endless;
process.send!({ providerUrl: provider.openaiUrl, endlessUrl, slowUrl } satisfies Listening);

async function attack({ target, forMs }: Order): Promise<void> {
  const cpuBefore = process.cpuUsage();
  const endAt = performance.now() + forMs;
  const attacks = await Promise.all(
    ATTACKS.map((one, i) => {
      const aims = target.tokens[i]!.map((token) => ({ ...target, token, from: `127.0.0.${FIRST_ADDRESS + i}` }));
      return repeat(one, aims, endAt);
    }),
  );
  const { user, system } = process.cpuUsage(cpuBefore);
  process.send!({ attacks, cpuMs: (user + system) / 1_000 } satisfies Report);
}

/** Begins the attack again and again, whether or not the one before is answered, and soon if that was refused. */
async function repeat(attack: Attack, aims: readonly Aim[], endAt: number): Promise<AttackReport> {
  const startedAt = performance.now();
  const answers: Record<string, number> = {};
  const triedAt: number[] = [];
  const open: Promise<boolean>[] = [];
  const tried = new Set(attack.tried.map(String));
  const begin = async (at: number): Promise<boolean> => {
    for (const { who, status } of await attack.begin(aims[open.length % aims.length]!)) {
      const outcome = [who, status ?? 'none'].join(' ').trim();
      answers[outcome] = (answers[outcome] ?? 0) + 1;
      if (tried.has(outcome) && triedAt.at(-1) !== at) triedAt.push(at);
    }
    return triedAt.includes(at);
  };
  await sleep(attack.afterMs ?? 0);
  while (performance.now() < endAt) {
    const begun = begin(performance.now());
    open.push(begun);
    const turn = sleep(Math.min(attack.everyMs, Math.max(0, endAt - performance.now())), true);
    await ((await Promise.race([begun, turn])) ? turn : sleep(REFUSED_MS));
  }
  await Promise.race([Promise.all(open), sleep(LAST_ANSWERS_MS)]);
  const times = [startedAt, ...triedAt.toSorted((a, b) => a - b), endAt];
  const longestGapMs = Math.max(...times.slice(1).map((at, i) => at - times[i]!));
  return { name: attack.name, begun: open.length, tried: triedAt.length, longestGapMs, answers };
}
