import { PolicyCache, type Instant, type PolicyWatch } from '#platform';

/** The maximum of cached valid credentials, and of unknown ones. Drops the oldest first. */
const MAX_CACHED = 20_000;

/** A second more than the minute of the statements: a write slightly too early would be skipped and a minute late. */
const TOUCH_MS = 61_000;

/** The stored state of a valid credential. */
export interface CredentialStatus<Value> {
  value: Value;
  /** The id under which a use is recorded. */
  id: string;
  /** The remaining validity at the time of the read, milliseconds; Infinity if it does not expire. */
  leftMs: number;
}

export interface KnownCredentialsOptions<Value> {
  watch: PolicyWatch;
  /** Returns null for an unknown or expired credential. Throws the error of the database. */
  read: (credential: string) => Promise<CredentialStatus<Value> | null>;
  /** Records a use, in the background. */
  touch: (id: string) => Promise<unknown>;
  /** Called if a use cannot be recorded. */
  onError: (error: unknown) => void;
}

/** Admits look-ups of credentials that this process has not cached. */
export interface Admission {
  /** Rejects to prevent a look-up. Anyone can send such credentials, so the sender is counted first (docs/adr/0024). */
  beforeLookUp(): Promise<void>;
}

/** A cache of credentials, each valid until the policy changes (docs/adr/0010) or it expires. */
export class KnownCredentials<Value> {
  private readonly known: PolicyCache<(CredentialStatus<Value> & { readAt: Instant }) | null>;
  /** Credentials that were valid at their last read. Only these are looked up without `Admission`. */
  private readonly seen = new Map<string, true>();
  /** Invalid credentials, with the generation of the policy at their read. */
  private readonly unknown = new Map<string, number>();
  /** Look-ups in progress. Requests with the same credential share one. */
  private readonly lookUps = new Map<string, LookUp<Value>>();
  /** The time of the last recorded use, by id. */
  private readonly touchedAt = new Map<string, Instant>();

  constructor(private readonly options: KnownCredentialsOptions<Value>) {
    const { watch, read } = options;
    this.known = new PolicyCache({
      watch,
      read: async (credential) => {
        // Taken before the read, so that it expires slightly early rather than late.
        const readAt = watch.moment();
        const status = await read(credential);
        return status && { ...status, readAt };
      },
      maxEntries: MAX_CACHED,
      // Unknown credentials are not cached here, because anyone can send them, and one created later must work immediately.
      isKept: (status) => status !== null,
    });
  }

  /** Returns null for an invalid credential. Throws the errors of the database and of `admission`. */
  async find(sent: string, admission?: Admission): Promise<Value | null> {
    const credential = copyOf(sent);
    if (admission === undefined || this.seen.has(credential)) return this.read(credential);
    // A change of the policy may have made it valid.
    if (this.unknown.get(credential) === this.options.watch.generation) return null;
    const shared = this.lookUps.get(credential);
    if (shared === undefined) return this.lookUp(credential, admission);
    // The sender of the other request may be over its limit while this one is within its own.
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
    const value = await this.readStatus(credential);
    if (value === null) {
      this.seen.delete(credential);
      addNewest(this.unknown, credential, generation);
    } else if (!this.seen.has(credential)) addNewest(this.seen, credential, true);
    return value;
  }

  private async readStatus(credential: string): Promise<Value | null> {
    let status = await this.known.get(credential);
    if (status !== null && this.hasExpired(status)) {
      // This clock may have been set, so the database decides.
      this.known.forget(credential);
      status = await this.known.get(credential);
    }
    if (status === null || this.hasExpired(status)) return null;
    this.touch(status.id);
    return status.value;
  }

  private hasExpired({ readAt, leftMs }: { readAt: Instant; leftMs: number }): boolean {
    return leftMs !== Infinity && this.options.watch.ageOf(readAt) >= leftMs;
  }

  /** Records a use at most about once a minute. */
  private touch(id: string): void {
    const { watch, touch, onError } = this.options;
    const touchedAt = this.touchedAt.get(id);
    if (touchedAt !== undefined && watch.ageOf(touchedAt) < TOUCH_MS) return;
    addNewest(this.touchedAt, id, watch.moment());
    touch(id).catch(onError);
  }
}

/** Copies the characters, because V8 would keep the whole header, up to 16 KiB, with a cached part of it. */
const copyOf = (text: string): string => Buffer.from(text).toString();

/** The look-up of one credential. `value` rejects if the look-up is not admitted. */
interface LookUp<Value> {
  isAdmitted: Promise<boolean>;
  value: Promise<Value | null>;
}

/** Adds the key as the newest one, and drops the oldest one if there are too many. */
function addNewest<Value>(map: Map<string, Value>, key: string, value: Value): void {
  map.delete(key);
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_CACHED && oldest !== undefined) map.delete(oldest);
}
