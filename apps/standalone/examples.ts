import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Config } from '#platform';

type Env = Record<string, string | undefined>;
type ToolSettings = Pick<Config, 'TOOL_SERVER_COMMANDS' | 'TOOL_SERVER_FOLDERS'>;

/** Returns the path of a file in `examples`, of the checkout that has the sources or the build. */
export function exampleFile(name: string, directory = import.meta.dirname): string {
  const file = join(directory, 'examples', name);
  return existsSync(file) || directory === dirname(directory) ? file : exampleFile(name, dirname(directory));
}

/** Settings by which an operator decides about programs, and what they must not see. */
const DECIDED_BY = ['TOOL_SERVER_COMMANDS', 'TOOL_SERVER_FOLDERS', 'TOOL_SERVER_ISOLATION', 'MANIFEST_FILES'];
/** The path of Node, and the folders in which the sandbox looks for bubblewrap. */
const THIS_MACHINE = { node: process.execPath, systemFolders: ['/usr/local/bin', '/usr/bin', '/bin'] };

/**
 * Returns the settings that examples/agents/analyst.yaml needs: npx, the packages of the checkout, and the handbook. Returns none if
 * the operator has decided about programs or secret files, even by an empty value, or if programs cannot be isolated.
 */
export function exampleTools(env: Env, dataDir: string, machine = THIS_MACHINE): Partial<ToolSettings> {
  const isDecided = DECIDED_BY.some((name) => name in env);
  if (isDecided || !machine.systemFolders.some((folder) => existsSync(join(folder, 'bwrap')))) return {};
  const programs = dirname(machine.node);
  const npx = join(programs, 'npx');
  const handbook = exampleFile('handbook');
  const packages = join(dirname(dirname(handbook)), 'node_modules');
  // Node and npm. Programs always see /usr.
  const ofNode = programs.startsWith('/usr/') ? [] : [machine.node, join(dirname(programs), 'lib/node_modules/npm')];
  const folders = [...ofNode, packages, `${handbook}:rw`];
  const areListable = [npx, ...folders].every((path) => !path.includes(','));
  const isInDataDir = [packages, handbook].some((path) => path.startsWith(`${dataDir}/`));
  if (![npx, packages, handbook].every((path) => existsSync(path)) || !areListable || isInDataDir) return {};
  return { TOOL_SERVER_COMMANDS: npx, TOOL_SERVER_FOLDERS: folders.join(',') };
}
