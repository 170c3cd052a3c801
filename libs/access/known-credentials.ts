import { PolicyCache, type Instant, type PolicyWatch } from '#platform';

/** How many valid credentials a process remembers, and how many unknown ones. Drops the oldest first. */
const MAX_REMEMBERED = 20_000;

/** A second more than the minute of the statements: what came a moment too early for them would be a minute late. */
const TOUCH_MS = 61_000;

/** What a credential stands for. */
export interface CredentialStatus<Value> {
  value: Value;
  /** Whose use is written down. */
  id: string;
  /** For how long it is good, when it was asked for; Infinity: it has no end. Milliseconds. */
  leftMs: number;
}

export interface KnownCredentialsOptions<Value> {
  watch: PolicyWatch;
  /** Null where there is no such credential, or it is over. Throws what the database throws. */
  read: (credential: string) => Promise<CredentialStatus<Value> | null>;
  /** Writes that it was used; nobody waits for it. */
  touch: (id: string) => Promise<unknown>;
  /** The use could not be written. */
  onError: (error: unknown) => void;
}

/** Admits look-ups of credentials that this process does not remember. */
export interface Admission {
  /** Rejects to prevent a look-up. Anyone can send such credentials, so the sender is counted first (docs/adr/0024). */
  beforeLookUp(): Promise<void>;
}

/** Credentials, remembered until the policy changes (docs/adr/0010) or they are over. */
export class KnownCredentials<Value> {
  private readonly known: PolicyCache<(CredentialStatus<Value> & { readAt: Instant }) | null>;
  /** Credentials that were valid when they were last read. Only these are looked up without `Admission`. */
  private readonly seen = new Map<string, true>();
  /** Credentials that are not valid, with the generation of the policy under which they were read. */
  private readonly unknown = new Map<string, number>();
  /** Look-ups of credentials that were not remembered. Requests with the same credential share one. */
  private readonly lookUps = new Map<string, LookUp<Value>>();
  /** When a use was last written, by id. */
  private readonly touchedAt = new Map<string, Instant>();

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

  /** Returns null for a credential that is not valid. Throws what the database throws, and what `admission` throws. */
  async find(sent: string, admission?: Admission): Promise<Value | null> {
    const credential = copyOf(sent);
    if (admission === undefined || this.seen.has(credential)) return this.read(credential);
    // A change of the policy may have made it valid.
    if (this.unknown.get(credential) === this.options.watch.generation) return null;
    const shared = this.lookUps.get(credential);
    if (shared === undefined) return this.lookUp(credential, admission);
    // The sender of the other request may be over its limit, and this one may not be.
    return (await shared.isAdmitted) ? shared.value : this.find(credential, admission);
  }

  forget(credential: string): void {
    this.known.forget(credential);
  }

  private lookUp(credential: string, admission: Admission): Promise<Value | null> {
    const admitted = admission.beforeLookUp();
    const isAdmitted = admitted.then(
      () => true,
      () => false,
    );
    const value = admitted.then(() => this.read(credential));
    this.lookUps.set(credential, { isAdmitted, value });
    const end = (): void => void this.lookUps.delete(credential);
    value.then(end, end);
    return value;
  }

  private async read(credential: string): Promise<Value | null> {
    const { generation } = this.options.watch;
    const value = await this.readStanding(credential);
    if (value === null) {
      this.seen.delete(credential);
      remember(this.unknown, credential, generation);
    } else if (!this.seen.has(credential)) remember(this.seen, credential, true);
    return value;
  }

  private async readStanding(credential: string): Promise<Value | null> {
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

  private isOver({ readAt, leftMs }: { readAt: Instant; leftMs: number }): boolean {
    return leftMs !== Infinity && this.options.watch.ageOf(readAt) >= leftMs;
  }

  /** Writes the use once a minute. */
  private touch(id: string): void {
    const { watch, touch, onError } = this.options;
    const touchedAt = this.touchedAt.get(id);
    if (touchedAt !== undefined && watch.ageOf(touchedAt) < TOUCH_MS) return;
    remember(this.touchedAt, id, watch.moment());
    touch(id).catch(onError);
  }
}

/** Copies the characters. V8 keeps the whole header, up to 16 KiB, for as long as a part of it is remembered. */
const copyOf = (text: string): string => Buffer.from(text).toString();

/** The look-up of one credential. `value` rejects if the look-up is not admitted. */
interface LookUp<Value> {
  isAdmitted: Promise<boolean>;
  value: Promise<Value | null>;
}

/** Adds the key as the newest one, and drops the oldest one if there are too many. */
function remember<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_REMEMBERED && oldest !== undefined) map.delete(oldest);
}
