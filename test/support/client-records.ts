import type { Database } from '#platform';
import type { Acknowledged, Caller, LogEntry } from './client.ts';
import type { KeyedRequest } from './keyed-client.ts';
import type { ToolName } from './fake-provider-calls.ts';
import type { Random } from './random.ts';

/** What an agent lives on, models and tools, which the test plays. */
export interface World {
  /** What is said to the agent so that it uses the tool once, and says so many pieces in all. */
  textOf(name: string, script: { pieces: number; pauseMs: number; tools: [ToolName] }): string;
  /** What the Threads show of the Runs of these messages is what models and tools know of them. */
  expectHeld(said: readonly Said[], log: readonly LogEntry[], database: Database): Promise<void>;
}

export interface StandardLoadParts {
  database: Database;
  fakeProvider: World;
  /** One for each api, as it is now. */
  callers: readonly (() => Caller)[];
  random: Random;
}

export type Decision = 'allow_once' | 'reject_once';

/** A message of the load, and what became of it as far as its client knows. */
export interface Said extends Acknowledged {
  request: KeyedRequest;
}

export interface Decided {
  threadId: string;
  requestId: string;
  decision: Decision;
  request: KeyedRequest;
}

export interface Watched {
  threadId: string;
  seen: LogEntry[];
}

/** Everything that clients have done and seen. */
export interface Records {
  threads: number;
  /** How many messages clients have begun to send. */
  asked: number;
  /** Of all Threads of this load, and no other. */
  userId: string;
  said: Said[];
  decided: Decided[];
  watched: Watched[];
  /** When something was wrong on purpose, by Date.now(). */
  faults: { from: number; to: number }[];
}
