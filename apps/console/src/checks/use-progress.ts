import { useEffect, useRef, useState } from 'react';
import type { AdminAnswer } from '#contract';
import { CallError, lines, type OperationAt } from '../api/client.ts';

export type ProgressPath = '/verify' | '/projections/rebuild';
export type ProgressLine<P extends ProgressPath> = AdminAnswer<OperationAt<'POST', P>>;

/** Of each line of theirs. */
interface HasEnd {
  done: boolean;
}

/** `stopped`: by the person; `failed`: `error` says why. In both `line` is the last that was heard. */
export interface Progress<Line> {
  phase: 'idle' | 'running' | 'done' | 'stopped' | 'failed';
  /** It began after this Thread: `line` tells of those that come after. Null: of all. */
  from: string | null;
  line: Line | null;
  error: CallError | null;
  startedAt: number;
  endedAt: number | null;
}

export interface Job<Line> extends Progress<Line> {
  /** From the Thread after this one; else from the first. */
  start: (from?: string) => void;
  stop: () => void;
}

const IDLE = { phase: 'idle', from: null, line: null, error: null, startedAt: 0, endedAt: null } as const;

/** Work that the service does for as long as somebody listens. It ends with this component. */
export function useProgress<P extends ProgressPath>(path: P): Job<ProgressLine<P>> {
  const [progress, setProgress] = useState<Progress<ProgressLine<P>>>(IDLE);
  const running = useRef<AbortController>(null);
  useEffect(() => () => running.current?.abort(), []);

  const start = async (from?: string): Promise<void> => {
    const hangUp = new AbortController();
    running.current = hangUp;
    setProgress({ ...IDLE, phase: 'running', from: from ?? null, startedAt: Date.now() });
    const end = (changed: Partial<Progress<ProgressLine<P>>>): void =>
      setProgress((before) => ({ ...before, ...changed, endedAt: Date.now() }));
    try {
      const call = { body: from === undefined ? {} : { from } };
      for await (const line of lines<'POST', P>('POST', path, call as never, hangUp.signal)) {
        setProgress((before) => ({ ...before, line }));
        if ((line as HasEnd).done) return end({ phase: 'done' });
      }
      end({
        phase: 'failed',
        error: new CallError(0, 'cut', 'The connection ended before the check was complete. Continue it.'),
      });
    } catch (error) {
      if (hangUp.signal.aborted) end({ phase: 'stopped' });
      else end({ phase: 'failed', error: toCallError(error) });
    }
  };
  return { ...progress, start: (from) => void start(from), stop: () => running.current?.abort() };
}

const toCallError = (error: unknown): CallError =>
  error instanceof CallError
    ? error
    : new CallError(0, 'cut', 'The connection to the service was lost before the end.');
