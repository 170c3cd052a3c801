import { Inject, Module, type OnApplicationShutdown } from '@nestjs/common';
import {
  CONFIG,
  DATABASE,
  LOGGER,
  openOutbound,
  PolicyWatch,
  type Config,
  type Database,
  type Logger,
} from '#platform';
import { AgentCatalogue } from './agent-catalogue.ts';
import { allowancesOf } from './allowances.ts';
import { echoHarness } from './echo/echo-harness.ts';
import { FILE_TOOLS } from './file-tools/file-tools.ts';
import { guideHarness } from './guide/guide-harness.ts';
import { harnessesByName, type Harness, type Harnesses } from './harness.ts';
import type { McpServers, McpServersOptions } from './mcp/mcp-servers.ts';
import { toolSandbox } from './mcp/sandbox.ts';
import { modelHarness } from './model/model-harness.ts';
import type { OnOddity } from './model/oddities.ts';
import type { Fetch } from './model/providers.ts';
import { noteToolWarnings } from './tool-warnings.ts';

/** Injection token of the process's harnesses, by name. */
export const HARNESSES = Symbol('HARNESSES');

@Module({
  providers: [
    {
      provide: HARNESSES,
      inject: [CONFIG, LOGGER, DATABASE],
      useFactory: (config: Config, logger: Logger, { pool }: Database) =>
        harnessesByName([
          echoHarness(),
          guideHarness(),
          realAgents(config, logger, { noteWarnings: noteToolWarnings.bind(null, pool) }),
          ...preloadedHarnesses(),
        ]),
    },
    {
      provide: AgentCatalogue,
      inject: [DATABASE, PolicyWatch, HARNESSES, CONFIG],
      useFactory: ({ pool }: Database, watch: PolicyWatch, harnesses: Harnesses, config: Config) =>
        new AgentCatalogue({ pool, watch, harnesses, allowances: allowancesOf(config, process.env) }),
    },
  ],
  exports: [HARNESSES, AgentCatalogue],
})
export class AgentsModule implements OnApplicationShutdown {
  constructor(@Inject(HARNESSES) private readonly harnesses: Harnesses) {}

  /** Runs after all Runs of the worker have ended or were handed over, so no call is in progress. */
  async onApplicationShutdown(): Promise<void> {
    for (const harness of this.harnesses.values()) await harness.close?.();
  }
}

/**
 * Returns the harnesses that a test has preloaded into this process (test/support/fake-provider-preload.ts); none in production.
 * This hook for tests is a global symbol, because a preloaded module and a bundle share no modules (docs/adr/0020).
 */
function preloadedHarnesses(): Harness[] {
  return (globalThis as { [key: symbol]: Harness[] | undefined })[Symbol.for('spool.harnesses')] ?? [];
}

interface RealAgentsOptions {
  /** Stores what was left out of the list of a tool server. Default: nothing is stored. */
  noteWarnings?: McpServersOptions['noteWarnings'];
  /** The environment variables. Default: those of the process. */
  env?: Record<string, string | undefined>;
  /** Wraps the `fetch` that calls providers. */
  watch?: (fetch: Fetch) => Fetch;
  /** Called for each difference between a provider and its protocol. */
  onOddity?: OnOddity;
}

/** Returns the harness `model`, with the tools of MCP servers and those for files. */
export function realAgents(
  config: Config,
  logger: Logger,
  {
    noteWarnings = () => Promise.resolve(),
    env = process.env,
    watch = (fetch) => fetch,
    onOddity,
  }: RealAgentsOptions = {},
): Harness {
  const outbound = openOutbound({ allowed: config.ALLOWED_PRIVATE_ADDRESSES });
  const allowances = allowancesOf(config, env);
  let servers: Promise<McpServers> | null = null;
  // Imported late: the SDK takes 200 ms of CPU to load, and most processes never start a server.
  const toolServers = async (): Promise<McpServers> => {
    const { McpServers } = await import('./mcp/mcp-servers.ts');
    const sandbox = toolSandbox(config, env);
    return new McpServers({ fetch: outbound.fetch, allowances, sandbox, logger, noteWarnings });
  };
  return modelHarness({
    fetch: watch(outbound.fetch as Fetch),
    allowances,
    logger,
    ...(onOddity === undefined ? {} : { onOddity }),
    tools: async (context) => {
      if (context.manifest.toolServers.length === 0) return FILE_TOOLS;
      servers ??= toolServers();
      return [...FILE_TOOLS, ...(await (await servers).tools(context))];
    },
    close: async () => {
      await (await servers)?.close();
      await outbound.close();
    },
  });
}
