import type { Random } from '../support/random.ts';

/** What may go wrong with one message between processes and servers, and how often at most. */
const WITH_A_MESSAGE = {
  'statement lost': 0.03,
  'answer lost': 0.03,
  /** The client has given up before the server begins. */
  'statement late': 0.02,
  'crash before': 0.02,
  'crash after': 0.02,
  slow: 0.1,
  'job lost': 0.2,
  'job doubled': 0.3,
  'job late': 0.2,
  'job out of order': 0.5,
  'queue answer lost': 0.1,
  'wake-up lost': 0.5,
  'wake-up doubled': 0.3,
} as const;

/** What may befall the installation, and how often at most, times in half a minute. */
const AT_ANY_TIME = {
  'crash a process': 12,
  'stop a process': 12,
  'cut a process off': 12,
  'shut a worker down': 20,
  'restart the database': 6,
  'queue away': 6,
  'flush the queue': 12,
  'set a clock': 12,
  'end a leader': 12,
  'pause Runs': 4,
  'change a limit': 20,
} as const;

export type MessageFault = keyof typeof WITH_A_MESSAGE;
export type Incident = keyof typeof AT_ANY_TIME;

/**
 * The faults of one simulation. Each kind is there in half of them and more or less often: what needs one fault many times
 * and no other in between is found too.
 */
export class Faults {
  private readonly rates = new Map<MessageFault, number>();
  readonly incidents: { kind: Incident; everyMs: number }[] = [];
  private over = false;

  constructor(private readonly random: Random) {
    for (const [fault, most] of Object.entries(WITH_A_MESSAGE)) {
      if (random.below(2) === 0) this.rates.set(fault as MessageFault, (most * (1 + random.below(10))) / 10);
    }
    for (const [kind, most] of Object.entries(AT_ANY_TIME)) {
      if (random.below(3) === 0)
        this.incidents.push({ kind: kind as Incident, everyMs: 30_000 / (most * (0.3 + random.below(8) / 10)) });
    }
  }

  /** From now on nothing goes wrong. */
  end(): void {
    this.over = true;
  }

  strikes(fault: MessageFault): boolean {
    const rate = this.rates.get(fault);
    return rate !== undefined && !this.over && this.random.below(100_000) < rate * 100_000;
  }

  /** One of those at most. */
  pick(faults: readonly MessageFault[]): MessageFault | null {
    if (this.over) return null;
    let drawn = this.random.below(100_000) / 100_000;
    for (const fault of faults) {
      drawn -= this.rates.get(fault) ?? 0;
      if (drawn < 0) return fault;
    }
    return null;
  }

  /** How long a message is under way, milliseconds. */
  latency(): number {
    if (this.strikes('slow')) return this.between(20, 1_500);
    // Mostly some tenths of a millisecond, seldom as much as 25.
    return 0.2 + 25 * (this.random.below(100_000) / 100_000) ** 6;
  }

  between(low: number, high: number): number {
    return low + ((high - low) * this.random.below(100_000)) / 100_000;
  }
}
