import { ownTurn, untilAborted, type Fetch, type Logger } from '#platform';
import { HarnessError, NoRoom, type RunContext, type Tool, type ToolContext, type ToolResult } from '../harness.ts';
import type { Allowances } from '../allowances.ts';
import { CallFailed, isRefusal, isSessionLost, type FailureKind } from './call-failed.ts';
import type { ConnectionOwner } from './connection.ts';
import { ConnectionPool, LATE_MS, ServerUnavailable } from './connection-pool.ts';
import { isMisconfigured } from './misconfigured.ts';
import { hideInError, hideInSlices } from './hide-secrets.ts';
import { describeTools, type ServerTool } from './describe-tools.ts';
import { readResult, resultBytes } from './read-result.ts';
import { serverReport } from './server-report.ts';
import { readyServer, type ReadyServer, type ToolServer } from './tool-server.ts';
import type { ToolSandbox } from './sandbox.ts';
import { ListTooLarge, NoToolList, type ToolListing } from './tool-list.ts';
import { tracedToolCall } from './traced-tool-call.ts';

type Described = Awaited<ReturnType<typeof describeTools>>;

const MAX_REFUSAL = 2 * 1024;
/** The most left-out tools that are logged for one list. */
const MAX_LOGGED = 20;

/** Returns whether requesting the list again would not help. */
const isFinal = (error: unknown): boolean =>
  (isRefusal(error) && !isSessionLost(error)) ||
  [ServerUnavailable, ListTooLarge, NoToolList, NoRoom].some((kind) => error instanceof kind);

export interface McpServersOptions {
  /** A guarded `fetch` (`openOutbound`), because manifests name the addresses. */
  fetch: Fetch;
  /** The variables, files and programs that manifests may name. */
  allowances: Allowances;
  /** The sandbox for the programs of servers. */
  sandbox: ToolSandbox;
  logger: Logger;
  /** Stores why tools of an agent's server were left out. Called for each list, with no warnings if none was left out. */
  noteWarnings: (agentId: string, toolServer: string, warnings: readonly string[]) => Promise<void>;
  idleMs?: number;
  maxOpen?: number;
  /** How long an optional server that cannot be reached is left alone: Runs would wait for it one by one. */
  avoidMs?: number;
  /** How long a process may take to answer a ping after a call on it was given up. */
  pingMs?: number;
  /** How long a process may take to exit after its input has ended, and again after SIGTERM. */
  endMs?: number;
  /** How long new calls may use one process before another one is started. */
  maxAgeMs?: number;
}

/**
 * The tools of MCP servers, for all Runs of a worker process. Runs of an agent share its connections. A broken connection is
 * replaced when it is needed again (docs/adr/0014).
 */
export class McpServers {
  private readonly pool: ConnectionPool;
  private readonly avoidMs: number;
  /** The time until which each unreachable optional server is skipped. */
  private readonly avoided = new Map<string, number>();
  private readonly described = new WeakMap<ToolListing, Promise<Described>>();

  constructor(private readonly options: McpServersOptions) {
    const { fetch, sandbox, logger, idleMs = 60_000, maxOpen = 100, avoidMs = 30_000 } = options;
    const { pingMs = 5_000, endMs = 2_000, maxAgeMs = 60 * 60_000 } = options;
    this.avoidMs = avoidMs;
    this.pool = new ConnectionPool({ fetch, sandbox, logger, idleMs, maxOpen, pingMs, endMs, maxAgeMs });
  }

  /**
   * Returns the tools of all servers in the Run's manifest, without those of optional servers that cannot be reached. Throws
   * HarnessError (`tool_server_unavailable`, `tool_server_misconfigured`) if a required server cannot be reached.
   */
  async tools(context: RunContext): Promise<readonly Tool[]> {
    const found = context.manifest.toolServers.map((server) => this.toolsOf(server, context));
    // Waits for all, so that no rejection is unhandled.
    await Promise.allSettled(found);
    return (await Promise.all(found)).flat();
  }

  /** Closes all connections and ends the processes of servers. Resolves when they are gone. */
  close(): Promise<void> {
    return this.pool.close();
  }

  private async toolsOf(server: ToolServer, context: RunContext): Promise<Tool[]> {
    const { agentId, threadId, runId, attempt, signal } = context;
    const about = { agentId, threadId, runId, attempt, toolServer: server.name };
    const { logger, allowances } = this.options;
    const key = JSON.stringify([agentId, server]);
    if (performance.now() < (this.avoided.get(key) ?? 0)) return [];
    this.avoided.delete(key);
    try {
      const target = await readyServer(server, allowances);
      const listing = untilAborted(this.list(context, target), AbortSignal.timeout(server.startMs + LATE_MS));
      const listed = await untilAborted(listing, signal);
      const { tools, leftOut } = await this.describe(target, listed, agentId);
      for (const why of leftOut.slice(0, MAX_LOGGED)) logger.warn({ ...about, why }, 'tool left out');
      return tools.map((tool) => this.toolOf(tool, target));
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof NoRoom) throw error;
      if (server.required) throw unavailable(server, error);
      this.avoided.set(key, performance.now() + this.avoidMs);
      logger.warn({ err: error, ...about }, 'optional tool server left out');
      return [];
    }
  }

  /** Describes each list only once, because a list of 2 MiB takes milliseconds, and Runs share the checks of a tool's schema. */
  private describe({ server, secrets }: ReadyServer, listed: ToolListing, agentId: string): Promise<Described> {
    const known = this.described.get(listed);
    if (known !== undefined) return known;
    const described = describeInTurns(server, listed, secrets);
    this.described.set(listed, described);
    const noted = described.then(({ leftOut }) => this.options.noteWarnings(agentId, server.name, leftOut));
    // A Run neither waits for this nor fails because of it.
    noted.catch((error: unknown) => this.options.logger.warn({ err: error, agentId }, 'tool warnings were not stored'));
    return described;
  }

  /** Tries again on a new connection, because the server may have been restarted. */
  private async list(owner: ConnectionOwner, target: ReadyServer): Promise<ToolListing> {
    const list = () => this.pool.use(owner, target, (connection) => connection.tools());
    return list().catch((error: unknown) => {
      if (isFinal(error)) throw isRefusal(error) ? hideInError(error, target.secrets) : error;
      return list().catch((again: unknown) => {
        throw hideInError(again, target.secrets);
      });
    });
  }

  private toolOf({ serverName, ...described }: ServerTool, target: ReadyServer): Tool {
    const call = { name: serverName, idempotent: described.idempotent };
    return { ...described, execute: (input, context) => this.call(target, call, input, context) };
  }

  private async call(
    target: ReadyServer,
    { name, idempotent }: { name: string; idempotent: boolean },
    input: Record<string, unknown>,
    context: ToolContext,
  ): Promise<ToolResult> {
    const { threadId, runId, attempt, userId, toolCallId, signal } = context;
    const meta = { 'spool/userId': userId, 'spool/threadId': threadId, 'spool/runId': runId };
    const request = { name, input, toolCallId, meta, timeoutMs: target.server.timeoutMs, signal };
    for (let tries = 1; ; tries++) {
      try {
        const use = this.pool.use(context, target, (connection) => tracedToolCall(target.server, request, connection));
        const result = await untilAborted(use, signal);
        context.makeRoom(resultBytes(result));
        return await readResult(result, target.secrets, context);
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof ServerUnavailable) throw unavailable(target.server, error);
        const about = { threadId, runId, attempt };
        if (error instanceof NoRoom) return this.failed(target, new CallFailed('no_room', error), about);
        if (!(error instanceof CallFailed)) throw error;
        const mayRepeat = error.kind === 'not_sent' || (error.kind === 'lost' && idempotent);
        if (tries === 1 && mayRepeat) continue;
        return this.failed(target, error, about);
      }
    }
  }

  private failed({ server, secrets }: ReadyServer, error: CallFailed, about: object): ToolResult {
    const cause = hideInError(error.cause ?? error, secrets);
    this.options.logger.warn({ err: cause, ...about, toolServer: server.name, kind: error.kind }, 'tool call failed');
    if (error.kind === 'not_sent') throw unavailable(server, cause);
    const text =
      error.kind === 'refused' ? cause.message.slice(0, MAX_REFUSAL) : FAILURES[error.kind](server.timeoutMs);
    return { text, isError: true, cause: serverReport(server.name, cause, error.kind) };
  }
}

async function describeInTurns(
  server: ToolServer,
  listed: ToolListing,
  secrets: readonly string[],
): Promise<Described> {
  const shown = await hideInSlices(listed, secrets);
  await ownTurn();
  const { tools, leftOut } = await describeTools(server, shown.tools);
  const more = shown.isCut ? ['The server has more tools than the limit; only the first ones are used.'] : [];
  return { tools, leftOut: [...shown.leftOut, ...leftOut, ...more] };
}

/** The texts for the model. */
const FAILURES: Record<Exclude<FailureKind, 'refused' | 'not_sent'>, (timeoutMs: number) => string> = {
  lost: () =>
    'The outcome is unknown: the connection to the tool server was lost during the call. ' +
    'It may have taken effect and was not repeated.',
  timeout: (timeoutMs) =>
    `The tool did not answer within ${timeoutMs / 1_000} s and was cancelled. It may have taken effect.`,
  too_large: () => 'The tool server sent too much: a result of more than 16 MiB, or too many parts or messages.',
  no_room: () => 'The tool’s result could not be read: too much is being read at once. The call may have taken effect.',
  over_limit: () => 'The tool server used too much memory or CPU time and was ended. The call may have taken effect.',
  invalid: () => 'The tool server’s response is invalid. The call may have taken effect.',
};

function unavailable({ name }: ToolServer, cause: unknown): HarnessError {
  const code = isMisconfigured(cause) ? 'tool_server_misconfigured' : 'tool_server_unavailable';
  return new HarnessError(code, { cause, report: serverReport(name, cause) });
}
