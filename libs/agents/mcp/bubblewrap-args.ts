import { isWithin } from '../secrets.ts';

interface Seen {
  path: string;
  /** Without symbolic links. */
  real: string;
}

/** What a program sees of the machine. */
export interface SandboxView {
  /** `/bin` and the like, and where they point; null: a folder of its own. */
  systemLinks: readonly { path: string; target: string | null }[];
  /** The shorter first, so that one may hold another. */
  folders: readonly (Seen & { writable: boolean })[];
  /** Folders that are empty in them, without symbolic links. */
  hidden: readonly string[];
  program: Seen;
  network: boolean;
}

/** Bytes of `/tmp` and of `/dev/shm`, each: it is memory. */
const SCRATCH_BYTES = 128 * 1024 * 1024;

/** Files of `/etc` that programs need, and that hold no secrets. `/etc/ssl/private` does. */
const ETC = [
  ...['passwd', 'group', 'nsswitch.conf', 'hosts', 'localtime', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d'],
  ...['alternatives', 'ssl/certs', 'ssl/openssl.cnf', 'ssl/cert.pem', 'ca-certificates', 'pki/tls/certs'],
  ...['pki/ca-trust/extracted', 'mime.types', 'protocols', 'services'],
];
/** Only with the network: it tells where that is. */
const ETC_NETWORK = ['resolv.conf', 'host.conf', 'gai.conf'];

/**
 * Entries of `/proc` that change the machine. The kernel checks writes to most of them by the user of the machine, not by
 * capabilities: root without any capability could set `kernel.core_pattern`, which the kernel runs as root outside.
 */
const MACHINE = ['sys', 'sysrq-trigger', 'irq', 'bus', 'fs', 'acpi', 'scsi', 'mtrr', 'pressure'];

const LONE = ['--unshare-user', '--unshare-ipc', '--unshare-pid', '--unshare-uts', '--unshare-cgroup-try'];

/** The arguments of bubblewrap that come before the program. Information goes to file descriptor 3. */
export function bubblewrapArgs({ systemLinks, folders, hidden, program, network }: SandboxView): string[] {
  const etc = [...ETC, ...(network ? ETC_NETWORK : [])].map((name) => `/etc/${name}`);
  const roots = ['/usr', ...folders.map(({ real }) => real)];
  const isBound = roots.some((root) => isWithin(program.real, root));
  // A link below one of these is there already, or could not be made.
  const places = [...roots, ...systemLinks.map(({ path }) => path), ...folders.map(({ path }) => path)];
  const isPlaced = places.some((place) => isWithin(program.path, place));
  return [
    ...LONE,
    ...(network ? [] : ['--unshare-net']),
    // No user namespace inside, so no capability in one either. The session is its own: nothing can type into a terminal.
    ...['--disable-userns', '--cap-drop', 'ALL', '--die-with-parent', '--new-session', '--hostname', 'tool-server'],
    ...['--info-fd', '3', '--ro-bind', '/usr', '/usr'],
    ...systemLinks.flatMap(({ path, target }) =>
      target === null ? ['--ro-bind', path, path] : ['--symlink', target, path],
    ),
    ...etc.flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--proc', '/proc'],
    ...MACHINE.map((name) => `/proc/${name}`).flatMap((path) => ['--ro-bind-try', path, path]),
    ...['--dev', '/dev', '--size', String(SCRATCH_BYTES), '--tmpfs', '/dev/shm'],
    ...['--size', String(SCRATCH_BYTES), '--tmpfs', '/tmp'],
    ...folders.flatMap((folder) => [folder.writable ? '--bind' : '--ro-bind', folder.real, folder.real]),
    ...folders.flatMap(linkTo),
    ...(isBound ? [] : ['--ro-bind', program.real, program.real]),
    ...(isPlaced ? [] : linkTo(program)),
    ...hidden
      .filter((folder) => roots.some((root) => isWithin(folder, root)))
      .flatMap((folder) => ['--tmpfs', folder, '--remount-ro', folder]),
    // The root itself is memory too.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
  ];
}

const linkTo = ({ path, real }: Seen): string[] => (path === real ? [] : ['--symlink', real, path]);
