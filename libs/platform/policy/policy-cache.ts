import { DatabaseUnavailable } from '../postgres/database.ts';
import { TRUSTED_MS, type Instant, type PolicyWatch } from './policy-watch.ts';

export interface PolicyCacheOptions<Value> {
  watch: PolicyWatch;
  read: (key: string) => Promise<Value>;
  /** The maximum number of entries, because anyone can ask for many keys. Evicts the oldest first. */
  maxEntries: number;
  /** Returns whether to cache a value. Default: always. */
  isKept?: (value: Value) => boolean;
}

interface Entry<Value> {
  /** The time and the generation at which the read began. The value may lack later changes. */
  beganAt: Instant;
  generation: number;
  isOpen: boolean;
  value: Promise<Value>;
}

/**
 * Caches values until the policy changes. An entry is valid only in the generation in which its read began. So a late read that a
 * change has overtaken cannot restore the old state.
 */
export class PolicyCache<Value> {
  private readonly entries = new Map<string, Entry<Value>>();

  constructor(private readonly options: PolicyCacheOptions<Value>) {}

  /**
   * Returns the value, at most `TRUSTED_MS` old. Concurrent callers share one read. Throws the error of `read`, which is not
   * cached, and DatabaseUnavailable if the response came too late to be trusted.
   */
  async get(key: string): Promise<Value> {
    const entry = this.find(key) ?? this.begin(key);
    if (!entry.isOpen) return entry.value;
    const value = await entry.value;
    // The response may be old, for example after a suspension of the process.
    if (!this.holds(entry) && !this.isYoung(entry)) {
      throw new DatabaseUnavailable(new Error('The response was too old to use.'));
    }
    return value;
  }

  /** Drops the entry of the key. */
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
