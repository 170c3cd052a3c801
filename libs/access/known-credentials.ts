import { PolicyCache, type Moment, type PolicyWatch } from '#platform';

/** More than this are forgotten, the oldest first. */
const MAX_REMEMBERED = 20_000;

/** A second more than the minute of the statements: what came a moment too early for them would be a minute late. */
const TOUCH_MS = 61_000;

/** What a credential stands for. */
export interface Standing<Value> {
  value: Value;
  /** Whose use is written down. */
  id: string;
  /** For how long it is good, when it was asked for; Infinity: it has no end. Milliseconds. */
  leftMs: number;
}

export interface KnownCredentialsOptions<Value> {
  watch: PolicyWatch;
  /** Null where there is no such credential, or it is over. Throws what the database throws. */
  read: (credential: string) => Promise<Standing<Value> | null>;
  /** Writes that it was used; nobody waits for it. */
  touch: (id: string) => Promise<unknown>;
  /** The use could not be written. */
  onError: (error: unknown) => void;
}

/** Credentials, remembered until the policy changes (docs/adr/0010) or they are over. */
export class KnownCredentials<Value> {
  private readonly known: PolicyCache<(Standing<Value> & { readAt: Moment }) | null>;
  /** When a use was last written, by id. */
  private readonly touchedAt = new Map<string, Moment>();

  constructor(private readonly options: KnownCredentialsOptions<Value>) {
    const { watch, read } = options;
    this.known = new PolicyCache({
      watch,
      read: async (credential) => {
        // From before it is asked for: it is over a little early rather than late.
        const readAt = watch.moment();
        const standing = await read(credential);
        return standing && { ...standing, readAt };
      },
      maxEntries: MAX_REMEMBERED,
      // One that we never made is not: anyone can send those; and one that is made later works at once.
      isKept: (standing) => standing !== null,
    });
  }

  /** Null where it is not good. Throws what the database throws. */
  async find(credential: string): Promise<Value | null> {
    let standing = await this.known.get(credential);
    if (standing !== null && this.isOver(standing)) {
      // What is remembered must not outlive it; but our clock may have been set, so the database has the last word.
      this.known.forget(credential);
      standing = await this.known.get(credential);
    }
    if (standing === null || this.isOver(standing)) return null;
    this.touch(standing.id);
    return standing.value;
  }

  forget(credential: string): void {
    this.known.forget(credential);
  }

  private isOver({ readAt, leftMs }: { readAt: Moment; leftMs: number }): boolean {
    return leftMs !== Infinity && this.options.watch.ageOf(readAt) >= leftMs;
  }

  /** Writes the use once a minute. */
  private touch(id: string): void {
    const { watch, touch, onError } = this.options;
    const touchedAt = this.touchedAt.get(id);
    if (touchedAt !== undefined && watch.ageOf(touchedAt) < TOUCH_MS) return;
    this.touchedAt.delete(id);
    this.touchedAt.set(id, watch.moment());
    const [oldest] = this.touchedAt.keys();
    if (this.touchedAt.size > MAX_REMEMBERED && oldest !== undefined) this.touchedAt.delete(oldest);
    touch(id).catch(onError);
  }
}
