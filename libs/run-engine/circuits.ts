import type { Pool } from 'pg';
import { HarnessError, type Harness, type StepContext, type StepEvent } from '#agents';
import { isOutage, MAX_RETRY_AFTER_MS, type CircuitTurn, type FailureCause, type RunErrorCode } from '#domain';
import { BY_KEY, isDatabaseUnavailable, namedStatement, type Logger } from '#platform';

const TAKE_TURN = namedStatement(import.meta.dirname, 'take-turn.sql');
const OPEN_CIRCUIT = namedStatement(import.meta.dirname, 'open-circuit.sql');
const CLOSE_CIRCUIT = namedStatement(import.meta.dirname, 'close-circuit.sql');

/** Failed calls in a row of one process that open a circuit. A single one says little about a busy provider. */
const FAILURES_THAT_OPEN = 5;
/** The time between two calls while a circuit is open, unless the provider asks for a longer one. Milliseconds. */
const BETWEEN_PROBES_MS = 3_000;
/** How long a call may stay without an answer before another Run calls too. Milliseconds. */
const PROBE_MS = 30_000;
/** How far ahead turns are given. Later Runs wait between one and two of it, so that they do not all return together. */
const TURNS_AHEAD_MS = 60_000;

export interface CircuitParts {
  pool: Pool;
  logger: Logger;
}

/** A provider is failing, and the Run waits for its turn to call it. */
export class ProviderFailing extends HarnessError {
  constructor(
    code: RunErrorCode,
    more: HarnessError['more'],
    readonly turn: CircuitTurn,
    /** Whether this attempt called the provider. */
    readonly hasCalled: boolean,
  ) {
    super(code, more);
  }
}

interface TurnRow {
  isTurn: boolean;
  code: RunErrorCode;
  cause: FailureCause | null;
  waitMs: number;
}

/**
 * Circuit breakers of model providers, shared by all workers (docs/adr/0041). While a provider fails, one Run at a time calls
 * it, and the others wait in the database. The first answer wakes them. A provider that works costs no statement.
 */
export class Circuits {
  /** Failed calls in a row. */
  private readonly failures = new Map<string, number>();
  /** The circuits that were open when this process last looked. */
  private readonly open = new Set<string>();

  constructor(private readonly parts: CircuitParts) {}

  /** Guards the calls of one claim. `circuit`: null for an Agent without a provider. `isKnownOpen`: the Run waited for it. */
  guard(harness: Harness, circuit: string | null, isKnownOpen: boolean): ProviderGuard {
    if (circuit !== null && isKnownOpen) this.open.add(circuit);
    return new ProviderGuard(this, harness, circuit);
  }

  /** Returns null if the Run may call the provider, else when its turn is. Without the database, it may call. */
  async askToCall(circuit: string): Promise<{ isProbe: boolean; wait: TurnRow | null }> {
    if (!this.open.has(circuit)) return { isProbe: false, wait: null };
    const turn = await this.takeTurn(circuit, true);
    if (turn === null) this.open.delete(circuit);
    return turn === null || turn.isTurn ? { isProbe: turn !== null, wait: null } : { isProbe: false, wait: turn };
  }

  /** Notes an answer. Closes the circuit, and wakes the Runs that wait for it. */
  noteAnswer(circuit: string): void {
    this.failures.delete(circuit);
    if (!this.open.has(circuit)) return;
    const { pool, logger } = this.parts;
    pool
      .query<{ closed: number; woken: number }>({ ...CLOSE_CIRCUIT, values: [circuit] })
      .then(({ rows: [row] }) => {
        this.open.delete(circuit);
        if (row?.closed === 1) logger.info({ circuit, woken: row.woken }, 'provider answers again; its runs continue');
      })
      // The next answer closes it.
      .catch((error: unknown) => logger.warn({ err: error, circuit }, 'circuit not closed'));
  }

  /** Notes a failed call. Returns the Run's next turn if the circuit is open now, else null. */
  async noteFailure(circuit: string, { code, more }: HarnessError, isProbe: boolean): Promise<CircuitTurn | null> {
    const inARow = (this.failures.get(circuit) ?? 0) + 1;
    this.failures.set(circuit, inARow);
    if (inARow < FAILURES_THAT_OPEN && !this.open.has(circuit)) return null;
    const { pool, logger } = this.parts;
    const { retryAfterMs = 0, report } = more;
    const askedMs = Math.ceil(Math.min(retryAfterMs, MAX_RETRY_AFTER_MS));
    const cause = report === undefined ? null : JSON.stringify(report);
    const values = [circuit, code, cause, BETWEEN_PROBES_MS, askedMs, isProbe];
    try {
      const { rows } = await pool.query<{ wasClosed: boolean }>({ ...OPEN_CIRCUIT, ...BY_KEY, values });
      this.open.add(circuit);
      if (rows[0]?.wasClosed) logger.warn({ circuit, code, provider: report?.name }, 'provider fails; its runs wait');
    } catch (error) {
      if (!isDatabaseUnavailable(error)) throw error;
      return null;
    }
    const turn = await this.takeTurn(circuit, false);
    return turn && { circuit, waitMs: turn.waitMs };
  }

  private async takeTurn(circuit: string, wouldCall: boolean): Promise<TurnRow | null> {
    const values = [circuit, BETWEEN_PROBES_MS, PROBE_MS, TURNS_AHEAD_MS, Math.random(), wouldCall];
    try {
      const { rows } = await this.parts.pool.query<TurnRow>({ ...TAKE_TURN, ...BY_KEY, values });
      return rows[0] ?? null;
    } catch (error) {
      if (isDatabaseUnavailable(error)) return null;
      throw error;
    }
  }
}

/** Lets the model steps of one claim call their provider, unless it is failing and it is another Run's turn. */
export class ProviderGuard implements Pick<Harness, 'step'> {
  private isAdmitted = false;
  private isProbe = false;

  constructor(
    private readonly circuits: Circuits,
    private readonly harness: Harness,
    private readonly circuit: string | null,
  ) {}

  /** Throws ProviderFailing if the Run must wait. The next step does not ask again. */
  async admit(): Promise<void> {
    if (this.circuit === null || this.isAdmitted) return;
    const { isProbe, wait } = await this.circuits.askToCall(this.circuit);
    if (wait !== null) {
      const { code, cause, waitMs } = wait;
      const report = cause === null ? {} : { report: cause };
      throw new ProviderFailing(code, report, { circuit: this.circuit, waitMs }, false);
    }
    this.isAdmitted = true;
    this.isProbe = isProbe;
  }

  async *step(context: StepContext): AsyncGenerator<StepEvent> {
    await this.admit();
    const { isProbe } = this;
    this.isAdmitted = this.isProbe = false;
    let hasAnswered = false;
    try {
      for await (const event of this.harness.step(context)) {
        if (!hasAnswered) this.noteAnswer();
        hasAnswered = true;
        yield event;
      }
    } catch (error) {
      throw await this.afterFailure(error, isProbe);
    }
  }

  private noteAnswer(): void {
    if (this.circuit !== null) this.circuits.noteAnswer(this.circuit);
  }

  private async afterFailure(error: unknown, isProbe: boolean): Promise<unknown> {
    if (this.circuit === null || !(error instanceof HarnessError)) return error;
    if (!isOutage(error.code)) {
      // A refusal is an answer too.
      if (error.more.report?.status !== undefined) this.noteAnswer();
      return error;
    }
    const turn = await this.circuits.noteFailure(this.circuit, error, isProbe);
    return turn === null ? error : new ProviderFailing(error.code, error.more, turn, true);
  }
}
