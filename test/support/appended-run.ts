import { CommandHandler, ThreadStore } from '#event-store';
import type { Command } from '#domain';
import { newsOf, openLiveBus, type LiveBus } from '#live';
import { createLogger, loadConfig } from '#platform';
import { createAcknowledged, type Caller } from './client.ts';
import type { System } from './system.ts';

/** Longer than any test: nobody takes the Run away. */
const LEASE_MS = 60 * 60_000;

/**
 * A Run whose pieces a test appends itself, as a worker would, wake-ups included: as many and as large as it likes. Only
 * where no worker runs, which would take the Run.
 */
export class AppendedRun {
  private constructor(
    readonly threadId: string,
    private readonly runId: string,
    private readonly handler: CommandHandler,
    private readonly bus: LiveBus,
  ) {}

  static async start({ database, env }: System, caller: Caller): Promise<AppendedRun> {
    const { threadId, runId } = await createAcknowledged(caller, 'write');
    const bus = openLiveBus(loadConfig(env), createLogger('silent', 'test'));
    const handler = new CommandHandler({
      store: new ThreadStore(database.pool),
      leaseMs: LEASE_MS,
      onCommit: (commit) => bus.publish(commit.after.threadId, commit.after.version, newsOf(commit)),
    });
    const run = new AppendedRun(threadId, runId, handler, bus);
    await run.append(
      { type: 'claim_run', runId, dispatch: 1, holder: 'test' },
      { type: 'start_run', runId, attempt: 1 },
    );
    return run;
  }

  /** An entry each, in one append. */
  async write(...texts: string[]): Promise<void> {
    const facts = texts.map((text) => ({ type: 'assistant.text_added', data: { text } }) as const);
    await this.append({ type: 'record', runId: this.runId, attempt: 1, facts });
  }

  complete(): Promise<void> {
    return this.append({ type: 'complete_run', runId: this.runId, attempt: 1, finalOutput: null });
  }

  close(): Promise<void> {
    return this.bus.close();
  }

  private async append(...commands: Command[]): Promise<void> {
    const result = await this.handler.handle({ threadId: this.threadId, commands });
    if (result.outcome !== 'appended') throw new Error(JSON.stringify(result));
  }
}
