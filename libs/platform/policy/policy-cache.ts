import { DatabaseAway } from '../postgres/database.ts';
import { TRUSTED_MS, type Moment, type PolicyWatch } from './policy-watch.ts';

export interface PolicyCacheOptions<Value> {
  watch: PolicyWatch;
  read: (key: string) => Promise<Value>;
  /** More than so many are forgotten, the oldest first: anyone can ask for many. */
  maxEntries: number;
  /** Whether a value is worth remembering; by default each is. */
  isKept?: (value: Value) => boolean;
}

interface Entry<Value> {
  /** When its read began, and under which generation: it may show nothing newer. */
  beganAt: Moment;
  generation: number;
  isOpen: boolean;
  value: Promise<Value>;
}

/**
 * Values that hold until the policy changes. One is remembered together with the generation under which its read began, and
 * found only under that: so a read that a change has overtaken cannot bring the old state back, however late it comes.
 */
export class PolicyCache<Value> {
  private readonly entries = new Map<string, Entry<Value>>();

  constructor(private readonly options: PolicyCacheOptions<Value>) {}

  /**
   * The value, at most `TRUSTED_MS` old. Who asks while it is being read shares the read. Throws what `read` throws, which
   * is not remembered, and DatabaseAway where the answer took too long to be believed.
   */
  async get(key: string): Promise<Value> {
    const entry = this.find(key) ?? this.begin(key);
    if (!entry.isOpen) return entry.value;
    const value = await entry.value;
    // It may have been on its way for long: a process that was suspended finds it when it goes on.
    if (!this.holds(entry) && !this.isYoung(entry)) {
      throw new DatabaseAway(new Error('The response was too old to use.'));
    }
    return value;
  }

  /** What is known of the key is not to be used any more, for a reason of the caller's own. */
  forget(key: string): void {
    this.entries.delete(key);
  }

  private find(key: string): Entry<Value> | undefined {
    const entry = this.entries.get(key);
    if (entry?.generation !== this.options.watch.generation) return undefined;
    return this.options.watch.isTrusted || (entry.isOpen && this.isYoung(entry)) ? entry : undefined;
  }

  private holds({ generation }: Entry<Value>): boolean {
    const { watch } = this.options;
    return generation === watch.generation && watch.isTrusted;
  }

  private isYoung({ beganAt }: Entry<Value>): boolean {
    return this.options.watch.ageOf(beganAt) < TRUSTED_MS;
  }

  private begin(key: string): Entry<Value> {
    const { watch, read, maxEntries, isKept = () => true } = this.options;
    const { generation } = watch;
    const entry = { beganAt: watch.moment(), generation, isOpen: true, value: read(key) };
    const forget = (): void => {
      if (this.entries.get(key) === entry) this.entries.delete(key);
    };
    entry.value.then((value) => {
      entry.isOpen = false;
      if (!isKept(value) || generation !== watch.generation) forget();
    }, forget);
    this.entries.delete(key);
    this.entries.set(key, entry);
    const [oldest] = this.entries.keys();
    if (this.entries.size > maxEntries && oldest !== undefined) this.entries.delete(oldest);
    return entry;
  }
}
