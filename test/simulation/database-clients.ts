import { EventEmitter } from 'node:events';
import type { Pool } from 'pg';
import { StatementGroup } from '#platform';
import { groupOf, type DatabaseServer, type Result, type Session, type Statement } from './database-server.ts';
import type { Scheduler, SimulatedProcess } from './scheduler.ts';

/** What pg is asked: text with its values beside it, or a configuration. */
function statementOf(query: string | Statement, values?: unknown[]): Statement {
  const statement = typeof query === 'string' ? { text: query } : query;
  return values === undefined ? statement : { ...statement, values };
}

/** The pool of one process, with a connection for whoever asks. */
export function simulatedPool(server: DatabaseServer, process: SimulatedProcess): Pool {
  const query = (text: string | Statement, values?: unknown[]): Promise<Result> =>
    server.send(process, statementOf(text, values), null);
  const connect = async () => {
    const session = await server.connect(process);
    return {
      query: (text: string | Statement | StatementGroup, values?: unknown[]) =>
        text instanceof StatementGroup
          ? void sendGroup(server, process, text, session)
          : server.send(process, statementOf(text, values), session),
      release: (broken: boolean) => (broken ? server.hangUp(session) : server.end(session)),
    };
  };
  return { query, connect } as unknown as Pool;
}

/** Sends a group as one statement. */
async function sendGroup(
  server: DatabaseServer,
  process: SimulatedProcess,
  { statements, query_timeout = 0, callback }: StatementGroup,
  session: Session,
): Promise<void> {
  try {
    const { rows } = await server.send(process, groupOf(statements, query_timeout), session);
    const members = rows[0]!['members'] as Result['rows'];
    callback(
      null,
      members.map((row) => [row]),
    );
  } catch (error) {
    callback(error as Error, []);
  }
}

/** Where the connections of LeaderLoops lead to; set by the simulation that runs. */
export const leaders: { server: DatabaseServer | null; scheduler: Scheduler | null } = {
  server: null,
  scheduler: null,
};

interface LeaderOptions {
  query_timeout: number;
  options: string;
}

/** In the place of pg's Client: the connection that a LeaderLoop holds its advisory lock with. */
export class SimulatedClient extends EventEmitter {
  private readonly session: Session;

  constructor(private readonly settings: LeaderOptions) {
    super();
    const silenceMs = Number(/idle_session_timeout=(\d+)/.exec(settings.options)?.[1] ?? Infinity);
    this.session = leaders.server!.open(leaders.scheduler!.current!, silenceMs);
    this.session.onEnd = () => this.emit('end');
    this.session.onNotify = () => this.emit('notification');
  }

  async connect(): Promise<void> {
    await this.query('select 1');
  }

  query(text: string, values?: unknown[]): Promise<Result> {
    const statement = { ...statementOf(text, values), query_timeout: this.settings.query_timeout };
    return leaders.server!.send(this.session.process, statement, this.session);
  }

  async end(): Promise<void> {
    leaders.server!.end(this.session);
  }
}
