import { faultProxy, type FaultProxy } from '#testing';
import type { Caller } from './client.ts';
import type { ApiProcess, System } from './system.ts';

/**
 * A place where an api process runs, and another one after it was killed; with a proxy to its clients and one to
 * PostgreSQL, so that an answer can be lost on either way.
 */
export class Pod {
  /** From the kill until the next process is ready, by Date.now(). */
  readonly outages: { from: number; to: number }[] = [];
  private coming: Promise<void> | undefined;
  private line: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly system: System,
    private readonly env: Record<string, string>,
    private readonly toDatabase: FaultProxy,
    private api: ApiProcess,
    private fromClients: FaultProxy,
  ) {}

  static async start(system: System, env: Record<string, string> = {}): Promise<Pod> {
    const toDatabase = await faultProxy(Number(new URL(system.databaseUrl).port || 5432));
    const podEnv = { ...env, DATABASE_URL: toDatabase.through(system.databaseUrl) };
    const api = await system.startApi(podEnv);
    return new Pod(system, podEnv, toDatabase, api, await proxyTo(api));
  }

  /** By way of the proxy; also while no process runs. */
  get caller(): Caller {
    const { caller } = this.api;
    return { ...caller, baseUrl: this.fromClients.through(caller.baseUrl) };
  }

  /** kill -9, now. `isUp` resolves when the next process is ready. */
  kill(): void {
    if (this.coming !== undefined) throw new Error('The pod is down already.');
    this.api.process.signal('SIGKILL');
    this.coming = this.startAgain(Date.now()).finally(() => (this.coming = undefined));
    this.coming.catch(() => undefined); // told by isUp
  }

  /** One fault at a time, each with the pod up: one would take the other's answer away. */
  async strike<T>(fault: () => Promise<T>): Promise<T> {
    const struck = this.line.then(() => this.isUp()).then(fault);
    this.line = struck.catch(() => undefined);
    return struck;
  }

  async isUp(): Promise<void> {
    await this.coming;
  }

  /** Loses the answer to the next request of which any bytes contain the text; resolves when there was one. */
  loseAnswerToClient(text: string): Promise<void> {
    return this.fromClients.dropNextAnswer((request) => request.includes(text));
  }

  /** The same of PostgreSQL to the process. As answers come after COMMIT, it is done then. */
  loseAnswerOfDatabase(text: string, sent: () => void = () => undefined): Promise<void> {
    return this.toDatabase.dropNextAnswer((request) => {
      if (!request.includes(text)) return false;
      sent();
      return true;
    });
  }

  /** Whether a request of this time met no outage. */
  wasUp({ sentAt, answeredAt }: { sentAt: number; answeredAt: number }): boolean {
    return !this.outages.some(({ from, to }) => sentAt <= to && answeredAt >= from);
  }

  async close(): Promise<void> {
    await this.coming;
    await Promise.all([this.fromClients.close(), this.toDatabase.close()]);
  }

  private async startAgain(from: number): Promise<void> {
    const outage = { from, to: Infinity };
    this.outages.push(outage);
    expect((await this.api.process.exited).signal).toBe('SIGKILL');
    const api = await this.system.startApi(this.env);
    const before = this.fromClients;
    this.fromClients = await proxyTo(api);
    this.api = api;
    await before.close();
    outage.to = Date.now();
  }
}

const proxyTo = ({ caller }: ApiProcess): Promise<FaultProxy> => faultProxy(Number(new URL(caller.baseUrl).port));
