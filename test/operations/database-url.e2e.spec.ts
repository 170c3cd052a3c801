import { chmod, copyFile, mkdtemp, readFile, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase, type Database } from '#platform';
import {
  makeTestCertificates,
  spawnNode,
  startPrivatePostgres,
  type PrivatePostgres,
  type SpawnedNode,
  type TestCertificates,
} from '#testing';
import { allRunsCompleted, expectHealthy } from '../support/checks.ts';
import { createAcknowledged, inParallel } from '../support/client.ts';
import { SpoolCommand } from '../support/spool-command.ts';

/** The password is not in it. */
const CONNECTIONS = `
  select count(*)::integer as all, count(*) filter (where ssl)::integer as encrypted,
    count(*) filter (where client_addr is null)::integer as local,
    count(*) filter (where application_name = 'spool leases')::integer as leases
  from pg_stat_activity join pg_stat_ssl using (pid)
  where backend_type = 'client backend' and application_name like 'spool%'`;

describe('a PostgreSQL with TLS and a Unix socket', () => {
  let folder: string;
  let postgres: PrivatePostgres;
  let certificates: TestCertificates;
  let observer: Database;
  let running: SpawnedNode | undefined;

  beforeAll(async () => {
    // The server runs as another user if the tests run as root.
    folder = await mkdtemp(join(tmpdir(), 'spool-tls-'));
    await chmod(folder, 0o777);
    postgres = await startPrivatePostgres({ settings: { unix_socket_directories: folder } });
    const owner = await stat(join(postgres.dataDir, 'pgdata'));
    certificates = await makeTestCertificates(folder, { subject: 'DNS:localhost', owner });
    observer = await openDatabase({ url: postgres.ownerUrl, applicationName: 'observer', maxConnections: 1 });
    await observer.pool.query(`alter system set ssl_cert_file = '${certificates.certificate}'`);
    await observer.pool.query(`alter system set ssl_key_file = '${certificates.key}'`);
    await observer.pool.query('alter system set ssl = on');
    await observer.pool.query('select pg_reload_conf()');
  }, 60_000);

  afterEach(async () => {
    await running?.kill('SIGTERM');
    running = undefined;
  });

  afterAll(async () => {
    await observer?.close();
    await postgres?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const password = (): string => new URL(postgres.ownerUrl).password;
  const tlsUrl = (query: string): string =>
    `postgres://postgres:${password()}@localhost:${postgres.port}/spool?${query}`;
  const withAuthority = (sslmode: string, authority: string): string =>
    tlsUrl(`sslmode=${sslmode}&sslrootcert=${authority}`);
  const verified = (authority: string): string => withAuthority('verify-full', authority);
  const socketUrl = (): string =>
    `postgres://postgres:${password()}@/spool?host=${encodeURIComponent(folder)}&port=${postgres.port}`;
  const encodedSocketUrl = (): string =>
    `postgres://postgres:${password()}@${encodeURIComponent(folder)}:${postgres.port}/spool`;

  /** Starts the standalone on the URL, and completes concurrent Runs. Returns the kinds of its connections. */
  async function completeRuns(databaseUrl: string, runs: number, poolSize: number) {
    const dataDir = join(folder, `data-${poolSize}`);
    const env = { DATABASE_URL: databaseUrl, DATA_DIR: dataDir, PORT: '0', DATABASE_POOL_SIZE: String(poolSize) };
    running = spawnNode('dist/apps/standalone/main.js', [], { ...env, RATE_LIMIT_PER_MINUTE: '1000000' });
    const file = (await running.waitForLine(/(\S+quickstart-\S+\.env)/, 60_000))[1]!;
    await running.waitForLine(/Spool is ready/, 60_000);
    const text = await readFile(file, 'utf8');
    const value = (name: string): string => new RegExp(`^${name}=(.*)$`, 'm').exec(text)![1]!;
    const caller = { baseUrl: value('BASE_URL'), token: value('ACCESS_TOKEN'), agentId: value('AGENT_ID') };
    const { rows: before } = await observer.pool.query<{ count: number }>(
      'select count(*)::integer from run_summaries',
    );
    await inParallel(runs, runs, (i) => createAcknowledged(caller, `/pause 0 ${i}`));
    // The lease thread reads its claims once a second, and keeps its connection for 10 s.
    await createAcknowledged(caller, '/think 2000ms');
    await allRunsCompleted(observer, before[0]!.count + runs + 1, 60_000);
    const { rows } = await observer.pool.query<Record<'all' | 'encrypted' | 'local' | 'leases', number>>(CONNECTIONS);
    await expectHealthy(observer);
    return rows[0]!;
  }

  /** Returns whether a connection to the URL is encrypted. */
  async function isEncrypted(url: string): Promise<boolean> {
    const database = await openDatabase({ url, applicationName: 'spool mode', maxConnections: 1 });
    const sql = 'select ssl from pg_stat_ssl where pid = pg_backend_pid()';
    const { rows } = await database.pool.query<{ ssl: boolean }>(sql);
    await database.close();
    return rows[0]!.ssl;
  }

  const migrate = (databaseUrl: string) => new SpoolCommand({ DATABASE_URL: databaseUrl }).run(['migrate']);

  test('runs over TLS with verify-full, all connections encrypted, with a pool of 1', async () => {
    const { all, encrypted, leases } = await completeRuns(verified(certificates.authority), 20, 1);
    expect(leases).toBeGreaterThan(0);
    expect(encrypted).toBe(all);
  }, 120_000);

  test('runs over a Unix socket, all connections local, with a pool of 30', async () => {
    const { all, local, leases } = await completeRuns(socketUrl(), 60, 30);
    expect(leases).toBeGreaterThan(0);
    // More than a process could open with the former pool maximum of 10.
    expect(all).toBeGreaterThan(20);
    expect(local).toBe(all);
  }, 120_000);

  test('accepts the folder of a Unix socket as a percent-encoded host', async () => {
    expect(await migrate(encodedSocketUrl())).toMatchObject({ code: 0, err: '' });
  });

  test.each([
    ['of another authority', () => verified(certificates.otherAuthority)],
    ['of an authority that is not public', () => tlsUrl('sslmode=verify-full')],
    ['that names another host', () => verified(certificates.authority).replace('@localhost:', '@127.0.0.1:')],
  ])('rejects a server with a certificate %s', async (_, url) => {
    const { code, err } = await migrate(url());
    expect(err).toMatch(
      /The database spool at \S+ has an untrusted TLS certificate: .+ Check sslmode and sslrootcert in its URL\.\n$/,
    );
    expect(err).not.toContain(password());
    expect(code).toBe(5);
  });

  test('takes the password of the owner from PGPASSWORD, which no argument shows', async () => {
    const ownerUrl = new URL(postgres.ownerUrl);
    ownerUrl.password = '';
    const asOwner = ['migrate', '--owner-url', ownerUrl.href];
    const spool = (more: Record<string, string>) => new SpoolCommand({ DATABASE_URL: postgres.url, ...more });
    expect(await spool({}).run(asOwner)).toMatchObject({ code: 5 });
    expect(await spool({ PGPASSWORD: password() }).run(asOwner)).toMatchObject({ code: 0, err: '' });
    expect(await spool({}).run(['migrate'])).toMatchObject({ code: 0, err: '' });
  });

  test.each(['prefer', 'require', 'verify-ca'])('checks as much with sslmode=%s as with verify-full', async (mode) => {
    const url = withAuthority(mode, certificates.authority);
    expect(await isEncrypted(url)).toBe(true);
    await expect(isEncrypted(withAuthority(mode, certificates.otherAuthority))).rejects.toThrow(/certificate/);
    await expect(isEncrypted(url.replace('@localhost:', '@127.0.0.1:'))).rejects.toThrow(/altnames/);
  });

  test.each([
    ['encrypts without a check of the certificate', 'sslmode=no-verify', true],
    ['does not encrypt', 'sslmode=disable', false],
    ['does not encrypt', '', false],
  ])('%s with the parameters "%s"', async (_, parameters, encrypted) => {
    const url = tlsUrl(parameters).replace('@localhost:', '@127.0.0.1:');
    expect(await isEncrypted(url)).toBe(encrypted);
  });

  test('reads a replaced certificate file at the next connection', async () => {
    const file = join(folder, 'replaced.pem');
    await copyFile(certificates.authority, file);
    const database = await openDatabase({ url: verified(file), applicationName: 'spool rotation', maxConnections: 2 });
    const open = await database.pool.connect();
    await copyFile(certificates.otherAuthority, file);
    await expect(database.pool.connect()).rejects.toThrow(/certificate/);
    await copyFile(certificates.authority, file);
    (await database.pool.connect()).release();
    open.release();
    await database.close();
  });

  test('names a missing certificate file', async () => {
    const { code, err } = await migrate(verified(join(folder, 'missing.pem')));
    expect(err).toMatch(
      /a file that its URL names cannot be read: ENOENT: no such file or directory, open '.*missing\.pem'/,
    );
    expect(code).toBe(5);
  });

  test('reports that no server listens on the Unix socket', async () => {
    const { code, err } = await migrate(socketUrl().replace(`port=${postgres.port}`, 'port=1'));
    expect(err).toContain(`The database spool at ${folder}:1 does not answer.`);
    expect(code).toBe(5);
  });
});
