import type { Command } from './commands.ts';
import { command, happened, NOW, stateAfter } from './decider.testing.ts';
import { decide } from './decide.ts';
import type { ThreadEvent } from './events.ts';

const { created, message, queued, entered, archived } = happened;

const IDLE = [created()];
const QUEUED = [...IDLE, message('R1'), queued('R1'), entered('RUNNING', 'R1')];

const decideAfter = (events: ThreadEvent[], commands: Command[], endedRuns?: Set<string>) =>
  decide(commands, stateAfter(events), NOW, endedRuns);

const runIds = (...ids: (string | null)[]) => ({ outcomes: ids.map((runId) => ({ runId })) });

describe('a batch of commands', () => {
  it('names the Run of each command', () => {
    const batch = [command.interrupt(null), command.message('R2'), command.interrupt('R2'), command.message('R3')];
    expect(decideAfter(QUEUED, batch)).toMatchObject(runIds('R1', 'R2', 'R2', 'R3'));
  });

  it('names the new Run of a message that interrupts, and the cancelled Run of an interrupt', () => {
    expect(decideAfter(QUEUED, [command.message('R2', 'interrupt')])).toMatchObject(runIds('R2'));
    const queue = [command.message('R2', 'enqueue'), command.interrupt(null), command.interrupt(null)];
    expect(decideAfter(QUEUED, queue)).toMatchObject(runIds('R2', 'R1', 'R2'));
  });

  it('does nothing for an interrupt of a Run that ended before the batch or by it', () => {
    const batch = [command.interrupt('R0'), command.interrupt('R1'), command.interrupt('R1')];
    const decision = decideAfter(QUEUED, batch, new Set(['R0']));
    expect(decision).toMatchObject({
      outcomes: [
        { runId: 'R0', hadEnded: true },
        { runId: 'R1', hadEnded: false },
        { runId: 'R1', hadEnded: true },
      ],
    });
    expect(decision).toMatchObject({ events: [{ type: 'run.cancelled' }, { type: 'thread.status_entered' }] });
  });

  it('counts the Runs that an enqueued message waits for', () => {
    const batch = [command.message('R2', 'enqueue'), command.message('R3', 'enqueue'), command.interrupt('R1')];
    const behind = (...counts: number[]) => ({ outcomes: counts.map((waitsBehind) => ({ waitsBehind })) });
    expect(decideAfter(QUEUED, batch)).toMatchObject(behind(1, 2, 0));
    const alone = [command.message('R2', 'enqueue'), command.interrupt(null), command.message('R3', 'enqueue')];
    expect(decideAfter(IDLE, [...alone, command.message('R4', 'interrupt')])).toMatchObject(behind(0, 0, 0, 0));
  });

  it.each([
    ['a Run that is not known to have ended', [command.interrupt('R9')], 'run_not_live'],
    ['no active Run', [command.interrupt('R1'), command.interrupt(null)], 'no_active_run'],
    [
      'a message behind a message',
      [command.interrupt(null), command.message('R2'), command.message('R3')],
      'thread_busy',
    ],
  ])('is rejected as a whole for %s', (_, batch, rejected) => {
    expect(decideAfter(QUEUED, batch)).toMatchObject({ rejected });
  });

  it('is rejected by a Thread that is gone, even if the Run has ended', () => {
    const batch = [command.interrupt('R1'), command.message('R2')];
    expect(decideAfter([], batch, new Set(['R1']))).toMatchObject({ rejected: 'thread_missing' });
  });

  it('is rejected by an archived Thread even if the Run has ended', () => {
    const batch = [command.interrupt('R1')];
    expect(decideAfter([...IDLE, archived()], batch, new Set(['R1']))).toMatchObject({ rejected: 'thread_archived' });
  });
});
