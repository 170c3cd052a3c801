import { untilAborted } from '#platform';
import { McpConnection, type ConnectionOwner, type ConnectionParts } from './connection.ts';
import { hideInError } from './hide-secrets.ts';
import type { ReadyServer } from './tool-server.ts';

export interface PoolOptions extends ConnectionParts {
  /** How long an idle connection stays open, milliseconds. */
  idleMs: number;
  /** The most open connections, unless all of them are in use. */
  maxOpen: number;
}

/** How long a server is waited for after its `startMs`, milliseconds: the error of the connection comes first then, and says more. */
export const LATE_MS = 1_000;

/** Thrown if a tool server cannot be connected to. The cause contains no secrets and may be logged. */
export class ServerUnavailable extends Error {
  override name = 'ServerUnavailable';
}

interface Entry {
  key: string;
  connection: McpConnection;
  opened: Promise<void>;
  uses: number;
  idle: NodeJS.Timeout | null;
  ended: Promise<void> | null;
}

/** The connections of a process: one for each configured server of an agent, opened when it is needed. */
export class ConnectionPool {
  /** Connections that may be used, the most recently used last. */
  private readonly usable = new Map<string, Entry>();
  /** All connections that are still open. */
  private readonly open = new Set<Entry>();
  private isClosed = false;

  constructor(private readonly options: PoolOptions) {}

  /** Runs `act` with the connection of an agent to a server. Rejects with ServerUnavailable, and as `act` does. */
  async use<T>(
    owner: ConnectionOwner,
    target: ReadyServer,
    act: (connection: McpConnection) => Promise<T>,
  ): Promise<T> {
    const entry = this.entryOf(owner, target);
    entry.uses++;
    if (entry.idle !== null) clearTimeout(entry.idle);
    try {
      await entry.opened;
      return await act(entry.connection);
    } finally {
      entry.uses--;
      if (entry.uses === 0) this.rest(entry);
    }
  }

  /** Closes all connections, even those in use. */
  async close(): Promise<void> {
    this.isClosed = true;
    await Promise.all([...this.open].map((entry) => this.end(entry)));
  }

  private entryOf(owner: ConnectionOwner, target: ReadyServer): Entry {
    const key = JSON.stringify([owner.agentId, target.server, target.given]);
    if (this.isClosed) throw new ServerUnavailable('The process is stopping.');
    const known = this.usable.get(key);
    const entry = known ?? this.newEntry(key, owner, target);
    this.usable.delete(key);
    this.usable.set(key, entry);
    if (known === undefined) this.makeRoom();
    return entry;
  }

  private newEntry(key: string, owner: ConnectionOwner, target: ReadyServer): Entry {
    const connection = new McpConnection(target, this.options, owner);
    const entry: Entry = { key, connection, opened: Promise.resolve(), uses: 0, idle: null, ended: null };
    connection.onUnusable = () => this.retire(entry);
    this.open.add(entry);
    entry.opened = this.openEntry(entry, target);
    return entry;
  }

  private async openEntry(entry: Entry, { server, secrets }: ReadyServer): Promise<void> {
    const { startMs } = server;
    try {
      await untilAborted(entry.connection.open(startMs), AbortSignal.timeout(startMs + LATE_MS));
    } catch (error) {
      void this.end(entry);
      throw new ServerUnavailable(`Cannot connect to the tool server ${server.name}.`, {
        cause: hideInError(error, secrets),
      });
    }
  }

  private rest(entry: Entry): void {
    if (!entry.connection.isUsable) return void this.end(entry);
    entry.idle = setTimeout(() => void this.end(entry), this.options.idleMs).unref();
  }

  /** Closes the connection after its last use. */
  private retire(entry: Entry): void {
    if (this.usable.get(entry.key) === entry) this.usable.delete(entry.key);
    if (entry.uses === 0) void this.end(entry);
  }

  private makeRoom(): void {
    const idle = [...this.usable.values()].filter(({ uses, idle }) => uses === 0 && idle !== null);
    const tooMany = this.usable.size - this.options.maxOpen;
    for (const entry of idle.slice(0, Math.max(0, tooMany))) void this.end(entry);
  }

  private end(entry: Entry): Promise<void> {
    if (entry.idle !== null) clearTimeout(entry.idle);
    // Must happen before it ends, because its end retires it.
    entry.ended ??= Promise.resolve()
      .then(() => entry.connection.close())
      .catch((error: unknown) =>
        this.options.logger.debug({ err: error }, 'tool server connection could not be closed'),
      )
      .finally(() => this.open.delete(entry));
    if (this.usable.get(entry.key) === entry) this.usable.delete(entry.key);
    return entry.ended;
  }
}
