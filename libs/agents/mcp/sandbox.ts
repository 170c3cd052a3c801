import { execFile } from 'node:child_process';
import { access, constants, realpath, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ConfigError, parseFolders, type Config } from '#platform';
import { allowancesOf } from '../allowances.ts';
import { isWithin } from '../secrets.ts';
import { bubblewrapArgs } from './bubblewrap-args.ts';
import { limitArgs, serverLimits, type Limits, type ServerLimits } from './sandbox-limits.ts';
import { SandboxMissing } from './sandbox-missing.ts';
import { sandboxView, type SharedFolders } from './sandbox-view.ts';

export interface SandboxOptions extends Limits, SharedFolders {
  isolation: Config['TOOL_SERVER_ISOLATION'];
  /** Whom the programs run as; null: as the worker, or as nobody if the worker is root. */
  user: User | null;
}

interface User {
  uid: number;
  gid: number;
}

export interface Program {
  /** An absolute path. */
  command: string;
  args: readonly string[];
  env: Record<string, string>;
  network: boolean;
}

/** How a program is started. */
export interface Launch {
  file: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
  uid?: number;
  gid?: number;
  limits: ServerLimits;
  /** Further arguments of bubblewrap, by a pipe: the variables would be seen in the list of processes. Null without it. */
  piped: string | null;
}

export interface SandboxReport {
  /** Why no program is started; null where they are. */
  refused: string | null;
  /** What does not hold here. */
  warnings: string[];
}

const SYSTEM_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
const NO_BUBBLEWRAP =
  'Tool servers need bubblewrap 0.8 or newer (bwrap) and user namespaces; see docs/tools.md#isolation.';
/** The kernel lets root change the machine in ways that no namespace and no lack of capabilities prevents. */
const NOBODY: User = { uid: 65_534, gid: 65_534 };
const SHARED_USER = [
  'TOOL_SERVER_ISOLATION=user: tool servers of all organizations share a user and can read each other.',
  'TOOL_SERVER_ISOLATION=user: tool servers have the network.',
];
/** What it may take to try. Milliseconds. */
const TRY_MS = 10_000;

/** The sandbox that the settings describe. */
export function toolSandbox(config: Config, env: Record<string, string | undefined>): ToolSandbox {
  const [uid, gid] = (config.TOOL_SERVER_USER ?? '').split(':').map(Number);
  const { ownFiles, files } = allowancesOf(config, env);
  const { BLOB_URL, DATA_DIR } = config;
  return new ToolSandbox({
    isolation: config.TOOL_SERVER_ISOLATION,
    user: uid && gid ? { uid, gid } : null,
    folders: parseFolders(config.TOOL_SERVER_FOLDERS),
    // Secrets of manifests belong to one server, and these programs share their folders.
    hidden: [...ownFiles, ...files],
    ownFolders: [resolve(DATA_DIR), ...(BLOB_URL?.startsWith('file:') ? [fileURLToPath(BLOB_URL)] : [])],
    memoryBytes: config.TOOL_SERVER_MEMORY_BYTES,
  });
}

/** Starts programs of tool servers so that they know only what they were given (docs/adr/0023). */
export class ToolSandbox {
  private readonly user: User | null;
  private tried: Promise<void> | null = null;

  constructor(private readonly options: SandboxOptions) {
    const { isolation, user } = options;
    this.user = user ?? (isolation === 'bubblewrap' && isRoot() ? NOBODY : null);
  }

  /** Throws SandboxMissing where programs cannot be kept from the worker's secrets, and ConfigError. */
  async launch(program: Program): Promise<Launch> {
    await this.ready();
    const { isolation } = this.options;
    const limited = [...(await limitArgs(isolation, this.options)), program.command, ...program.args];
    const common = { ...this.user, limits: serverLimits(this.options) };
    if (isolation === 'bubblewrap') {
      const { args, cwd } = await this.bubblewrap(program);
      const env = Object.entries({ PATH: pathFor(program), HOME: '/tmp', TMPDIR: '/tmp', ...program.env });
      const piped = ['--clearenv', ...env.flatMap(([name, value]) => ['--setenv', name, value]), ...cwd];
      const file = await findProgram('bwrap');
      // The program's own variables (LD_PRELOAD) must not reach bubblewrap itself.
      const started = { file, args: [...args, '--args', '4', '--', ...limited], env: { PATH: SYSTEM_PATH }, cwd: '/' };
      return { ...started, ...common, piped: piped.map((arg) => `${arg}\0`).join('') };
    }
    const [file = '', ...args] = limited;
    const own = isolation === 'none' ? getDefaultEnvironment() : { PATH: pathFor(program), HOME: '/tmp' };
    const cwd = isolation === 'none' ? process.cwd() : '/';
    return { file, args, env: { ...own, ...program.env }, cwd, ...common, piped: null };
  }

  /** Returns what holds here, for operators. Throws ConfigError. */
  async report(): Promise<SandboxReport> {
    const { isolation } = this.options;
    const warnings: string[] = [];
    if (isolation === 'none') {
      warnings.push(
        'TOOL_SERVER_ISOLATION=none: tool servers can read all secrets of the workers. Set it to bubblewrap or user.',
      );
      if ((await limitArgs(isolation, this.options)).length === 0)
        warnings.push('prlimit (util-linux) is missing: processes of tool servers have no limits.');
    }
    if (isolation === 'user') warnings.push(...SHARED_USER);
    const refused = await this.ready().then(
      () => null,
      (error: unknown) => {
        if (error instanceof ConfigError) throw error;
        return (error as Error).message;
      },
    );
    return { refused, warnings };
  }

  private ready(): Promise<void> {
    // A failure is not remembered: it may be that there was no memory.
    this.tried ??= this.try().catch((error: unknown) => {
      this.tried = null;
      throw error;
    });
    return this.tried;
  }

  private async try(): Promise<void> {
    const { isolation, user } = this.options;
    if (isolation === 'none') return;
    if (user !== null && !isRoot())
      throw new SandboxMissing('TOOL_SERVER_USER needs a worker that runs as root; unset it.');
    await limitArgs(isolation, this.options);
    if (isolation === 'bubblewrap') return this.tryBubblewrap();
    if (user === null) throw new SandboxMissing('TOOL_SERVER_ISOLATION=user needs TOOL_SERVER_USER.');
    for (const path of this.options.hidden)
      if ((await stat(path).catch(() => null))?.uid === user.uid)
        throw new SandboxMissing(`The user of TOOL_SERVER_USER owns ${path} of the service; set another one.`);
  }

  private async tryBubblewrap(): Promise<void> {
    try {
      const { args } = await this.bubblewrap({ command: '/usr/bin/env', network: false });
      const options = { env: { PATH: SYSTEM_PATH }, cwd: '/', timeout: TRY_MS, ...this.user };
      const file = await findProgram('bwrap');
      // Without a pipe that the information could be written to.
      const withoutInfo = args.filter((arg, i) => arg !== '--info-fd' && args[i - 1] !== '--info-fd');
      await promisify(execFile)(file, [...withoutInfo, '--', '/usr/bin/env', 'true'], options);
    } catch (error) {
      if (error instanceof SandboxMissing || error instanceof ConfigError) throw error;
      throw new SandboxMissing(this.describeFailure(error as { code?: unknown; stderr?: string }), { cause: error });
    }
  }

  private describeFailure({ code, stderr = '' }: { code?: unknown; stderr?: string }): string {
    const said = stderr.trim().slice(0, 200);
    const { uid } = this.user ?? {};
    // In a user namespace that has no such user.
    if (code === 'EINVAL')
      return `Tool servers cannot run as the user ${uid} here; set TOOL_SERVER_USER to another one.`;
    if (uid !== undefined && /Permission denied/.test(said)) return `Tool servers run as the user ${uid}: ${said}`;
    return `${NO_BUBBLEWRAP} ${said}`.trim();
  }

  private async bubblewrap(program: Pick<Program, 'command' | 'network'>) {
    const view = await sandboxView(this.options, program);
    const here = await realpath(process.cwd());
    const sees = here !== '/' && view.folders.some(({ real }) => isWithin(here, real) || isWithin(real, here));
    return { args: bubblewrapArgs(view), cwd: ['--chdir', sees ? here : '/tmp'] };
  }
}

const isRoot = (): boolean => process.getuid?.() === 0;

/** Variables of the worker that hold no secrets. */
function getDefaultEnvironment(): Record<string, string> {
  const names = ['HOME', 'LOGNAME', 'PATH', 'SHELL', 'TERM', 'USER'];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

const pathFor = ({ command }: Program): string => `${dirname(command)}:${SYSTEM_PATH}`;

async function findProgram(name: string): Promise<string> {
  for (const folder of SYSTEM_PATH.split(':')) {
    const file = `${folder}/${name}`;
    if (
      await access(file, constants.X_OK).then(
        () => true,
        () => false,
      )
    )
      return file;
  }
  throw new SandboxMissing(NO_BUBBLEWRAP);
}
