import type { Config } from '#platform';
import { toolSandbox, type SandboxReport } from './sandbox.ts';

/** What a worker tells of its tool servers at its start: the table `workers` keeps it for `doctor`. */
export interface WorkerSandbox extends SandboxReport {
  /** Null if no program may be started. */
  isolation: Config['TOOL_SERVER_ISOLATION'] | null;
}

/** Throws ConfigError. */
export async function workerSandbox(config: Config, env: Record<string, string | undefined>): Promise<WorkerSandbox> {
  if (config.TOOL_SERVER_COMMANDS === undefined) return { isolation: null, refused: null, warnings: [] };
  return { isolation: config.TOOL_SERVER_ISOLATION, ...(await toolSandbox(config, env).report()) };
}
