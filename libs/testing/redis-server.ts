import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { eventually } from './eventually.ts';
import { spawnGuarded, type GuardedProcess } from './guarded-process.ts';
import { trackRunning } from './running.ts';
import { makeTestCertificates, type TestCertificates } from './test-certificates.ts';

/** The user of every secured server. The password needs percent-encoding. */
export const REDIS_USER = { username: 'spool', password: 'p@ss/w:rd%+' };

/** Servers with one folder for their files, one user and common TLS settings. */
export class RedisGroup {
  private readonly servers: RedisServer[] = [];
  private readonly untrack: () => void;

  private constructor(
    what: string,
    private readonly folder: string,
    private readonly certificates: TestCertificates | null,
  ) {
    this.untrack = trackRunning({ what, end: () => void this.stop() });
  }

  static async open(what: string, { tls = false }: { tls?: boolean } = {}): Promise<RedisGroup> {
    const folder = await mkdtemp(join(tmpdir(), 'spool-test-redis-'));
    return new RedisGroup(what, folder, tls ? await makeTestCertificates(folder, { subject: 'IP:127.0.0.1' }) : null);
  }

  /** `rediss` with TLS. */
  get scheme(): string {
    return this.certificates === null ? 'redis' : 'rediss';
  }

  /** User and password in the form of an address. */
  get credentials(): string {
    const { username, password } = REDIS_USER;
    return `${username}:${encodeURIComponent(password)}@`;
  }

  /** The certificate parameters of an address: `?…`, or nothing without TLS. */
  get parameters(): string {
    if (this.certificates === null) return '';
    const { authority, certificate, key } = this.certificates;
    return `?cacert=${authority}&cert=${certificate}&key=${key}`;
  }

  /** Starts a server with these lines in its configuration. */
  async start(port: number, lines: readonly string[], flags: readonly string[] = []): Promise<RedisServer> {
    const { username, password } = REDIS_USER;
    const { certificates } = this;
    const listen = certificates === null ? [`port ${port}`] : tlsLines(port, certificates, flags);
    const users = ['user default off', `user ${username} on >${password} ~* &* +@all`];
    const config = [...listen, 'bind 127.0.0.1', `dir ${this.folder}`, ...users, ...lines].join('\n');
    const file = join(this.folder, `${port}.conf`);
    await writeFile(file, `${config}\n`);
    const server = new RedisServer(port, [file, ...flags], certificates);
    this.servers.push(server);
    await server.start().catch(async (error: unknown) => {
      await this.stop();
      throw error;
    });
    return server;
  }

  /** Stops all servers and deletes their files. Idempotent. */
  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.kill()));
    await rm(this.folder, { recursive: true, force: true });
    this.untrack();
  }
}

/** A redis-server of a group. */
export class RedisServer {
  private process: GuardedProcess | undefined;
  private client: Redis | undefined;
  private isPaused = false;

  constructor(
    readonly port: number,
    private readonly args: string[],
    private readonly certificates: TestCertificates | null,
  ) {}

  get host(): string {
    return `127.0.0.1:${this.port}`;
  }

  get answers(): boolean {
    return this.process !== undefined && !this.isPaused;
  }

  async start(): Promise<void> {
    this.process = await spawnGuarded('redis-server', this.args);
    const answers = async (): Promise<boolean> => (await this.ask('PING')) === 'PONG';
    await eventually(answers, { what: `redis-server answers on port ${this.port}` });
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    this.client?.disconnect();
    this.client = undefined;
    await this.process?.end();
    this.process = undefined;
  }

  /** Sends SIGSTOP: connections stay open, but the server does not answer. */
  pause(): void {
    this.process?.signal('SIGSTOP');
    this.isPaused = true;
  }

  /** Sends SIGCONT. */
  resume(): void {
    this.process?.signal('SIGCONT');
    this.isPaused = false;
  }

  /** Sends one command, and returns the answer. */
  async ask(command: string, ...args: (string | number)[]): Promise<unknown> {
    this.client ??= new Redis({
      host: '127.0.0.1',
      port: this.port,
      ...REDIS_USER,
      enableReadyCheck: false,
      commandTimeout: 6_000, // longer than MIGRATE may take
      retryStrategy: () => 50,
      maxRetriesPerRequest: 0,
      ...(this.certificates === null ? {} : { tls: readTls(this.certificates) }),
    }).on('error', () => undefined); // reported by the rejected command
    return this.client.call(command, ...args);
  }

  /** Returns a field of INFO. */
  async info(name: string): Promise<string | undefined> {
    return new RegExp(`^${name}:(\\S+)`, 'm').exec((await this.ask('INFO')) as string)?.[1];
  }
}

const readTls = ({ authority, certificate, key }: TestCertificates) => ({
  ca: readFileSync(authority),
  cert: readFileSync(certificate),
  key: readFileSync(key),
});

const tlsLines = (port: number, { authority, certificate, key }: TestCertificates, flags: readonly string[]) => [
  ...['port 0', `tls-port ${port}`, 'tls-replication yes', 'tls-auth-clients yes'],
  ...[`tls-ca-cert-file ${authority}`, `tls-cert-file ${certificate}`, `tls-key-file ${key}`],
  ...(flags.includes('--sentinel') ? [] : ['tls-cluster yes']),
];
