import type { Pool } from 'pg';
import {
  HarnessError,
  type AgentManifest,
  type Harness,
  type ModelCandidate,
  type StepContext,
  type StepEvent,
} from '#agents';
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
/** Circuits whose failed calls in a row are counted; those that failed last. */
const MAX_COUNTED = 1_000;

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

  /** Guards the calls of one claim. `waitedFor`: the circuit for which the Run waited. */
  guard(harness: Harness, manifest: AgentManifest, waitedFor: string | undefined): ProviderGuard {
    const candidates = harness.models?.(manifest) ?? [];
    if (waitedFor !== undefined && candidates.some(({ circuit }) => circuit === waitedFor)) this.open.add(waitedFor);
    return new ProviderGuard(this, harness, candidates, this.parts.logger);
  }

  /**
   * Returns null if the Run may call the provider, else when its turn would be. `keepsTurn`: whether the Run waits for that turn.
   * Without the database, it may call.
   */
  async askToCall(circuit: string, keepsTurn: boolean): Promise<{ isProbe: boolean; wait: TurnRow | null }> {
    if (!this.open.has(circuit)) return { isProbe: false, wait: null };
    const turn = await this.takeTurn(circuit, { wouldCall: true, keepsTurn });
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

  /** Notes a failed call, which may open the circuit. */
  async noteFailure(circuit: string, { code, more }: HarnessError, isProbe: boolean): Promise<void> {
    const inARow = (this.failures.get(circuit) ?? 0) + 1;
    this.failures.delete(circuit);
    this.failures.set(circuit, inARow);
    const [oldest] = this.failures.keys();
    if (this.failures.size > MAX_COUNTED) this.failures.delete(oldest!);
    if (inARow < FAILURES_THAT_OPEN && !this.open.has(circuit)) return;
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
    }
  }

  /** Gives a Run that has called the provider its next turn; null if the circuit is closed. */
  async turnAfterCall(circuit: string): Promise<CircuitTurn | null> {
    if (!this.open.has(circuit)) return null;
    const turn = await this.takeTurn(circuit, { wouldCall: false, keepsTurn: true });
    return turn && { circuit, waitMs: turn.waitMs };
  }

  private async takeTurn(
    circuit: string,
    { wouldCall, keepsTurn }: { wouldCall: boolean; keepsTurn: boolean },
  ): Promise<TurnRow | null> {
    const values = [circuit, BETWEEN_PROBES_MS, PROBE_MS, TURNS_AHEAD_MS, Math.random(), wouldCall, keepsTurn];
    try {
      const { rows } = await this.parts.pool.query<TurnRow>({ ...TAKE_TURN, ...BY_KEY, values });
      return rows[0] ?? null;
    } catch (error) {
      if (isDatabaseUnavailable(error)) return null;
      throw error;
    }
  }
}

/** A model that the Run may call now. */
interface Admitted extends ModelCandidate {
  isProbe: boolean;
}

/**
 * Lets the model steps of one claim call their provider, unless it is failing and it is another Run's turn. Then, or if the call
 * fails before any output, the Agent's next model makes the step. If all fail, it is as if the Agent had only the first one.
 */
export class ProviderGuard implements Pick<Harness, 'step'> {
  private admitted: Admitted | null = null;

  constructor(
    private readonly circuits: Circuits,
    private readonly harness: Harness,
    private readonly models: readonly ModelCandidate[],
    private readonly logger: Logger,
  ) {}

  /** Throws ProviderFailing if the Run must wait. The next step does not ask again. */
  async admit(): Promise<void> {
    const [first, ...fallbacks] = this.models;
    if (first === undefined || this.admitted !== null) return;
    const found = fallbacks.length > 0 ? await this.firstOf(this.models) : null;
    this.admitted = found ?? (await this.askOrWait(first));
  }

  async *step(context: StepContext): AsyncGenerator<StepEvent> {
    await this.admit();
    let { admitted } = this;
    this.admitted = null;
    if (admitted === null) {
      yield* this.harness.step(context);
      return;
    }
    let failed: HarnessError | null = null;
    for (;;) {
      const { manifest, circuit, model } = admitted;
      let hasOutput = false;
      try {
        for await (const event of this.harness.step({ ...context, manifest })) {
          if (!hasOutput) this.circuits.noteAnswer(circuit);
          hasOutput = true;
          yield event.type === 'message' && model !== undefined ? { ...event, model } : event;
        }
        return;
      } catch (error) {
        if (!(error instanceof HarnessError)) throw error;
        const isFirst = model?.fallback === undefined;
        await this.noteFailure(error, admitted);
        if (isFirst) failed = error;
        if (hasOutput || (isFirst && !isOutage(error.code))) throw isFirst ? await this.withTurn(error) : error;
        if (!isFirst) this.logger.warn({ err: error, circuit, model: model?.name }, 'fallback model failed');
        admitted = await this.nextAfter(admitted, failed);
      }
    }
  }

  /** Throws `failed`, the error of the Agent's first model, if no other model may be called; null if it was not called. */
  private async nextAfter({ model }: Admitted, failed: HarnessError | null): Promise<Admitted> {
    const next = await this.firstOf(this.models.slice((model?.fallback ?? 0) + 1));
    if (next !== null) return next;
    if (failed !== null) throw await this.withTurn(failed);
    return this.askOrWait(this.models[0]!);
  }

  private async firstOf(models: readonly ModelCandidate[]): Promise<Admitted | null> {
    for (const model of models) {
      const { isProbe, wait } = await this.circuits.askToCall(model.circuit, false);
      if (wait === null) return { ...model, isProbe };
    }
    return null;
  }

  private async askOrWait(model: ModelCandidate): Promise<Admitted> {
    const { circuit } = model;
    const { isProbe, wait } = await this.circuits.askToCall(circuit, true);
    if (wait === null) return { ...model, isProbe };
    const { code, cause, waitMs } = wait;
    throw new ProviderFailing(code, cause === null ? {} : { report: withoutCall(cause) }, { circuit, waitMs }, false);
  }

  private async noteFailure(error: HarnessError, { circuit, isProbe }: Admitted): Promise<void> {
    if (isOutage(error.code)) await this.circuits.noteFailure(circuit, error, isProbe);
    // A refusal is an answer too.
    else if (error.more.report?.status !== undefined) this.circuits.noteAnswer(circuit);
  }

  /** Returns an error of the first model, with the Run's next turn if the circuit is open. */
  private async withTurn(error: HarnessError): Promise<HarnessError> {
    const turn = isOutage(error.code) ? await this.circuits.turnAfterCall(this.models[0]!.circuit) : null;
    return turn === null ? error : new ProviderFailing(error.code, error.more, turn, true);
  }
}

/** Returns the cause of a failing provider without the facts of the call that another Run made. */
function withoutCall(cause: FailureCause): FailureCause {
  const { requestId: _requestId, waitedMs: _waitedMs, ...rest } = cause;
  return rest;
}
