import { createRequire } from 'node:module';
import { join } from 'node:path';
import type PinoPretty from 'pino-pretty';
import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino';
import { traceId } from './tracing.ts';

export type { Logger };

/** Creates a logger that writes JSON lines to standard output. Hides secrets in the fields of all objects. */
export function createLogger(level: string, name: string, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    name,
    level,
    mixin: traceOf,
    serializers: { err: (error: unknown) => serializeError(error) },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }), log: (said) => hideSecretFields(said) as typeof said },
  };
  return destination ? pino(options, destination) : pino(options);
}

/**
 * Returns the destination of the log; undefined means JSON on standard output. `auto` means `pretty` on a terminal, and JSON for
 * a file or a pipe.
 */
export function logOutput(format: 'auto' | 'json' | 'pretty'): DestinationStream | undefined {
  const isPretty = format === 'pretty' || (format === 'auto' && process.stdout.isTTY);
  if (!isPretty) return undefined;
  // Loaded only if used, because that takes 70 ms.
  const pretty = createRequire(join(import.meta.dirname, 'x.js'))('pino-pretty') as typeof PinoPretty;
  return pretty({
    colorize: process.stdout.isTTY,
    translateTime: 'SYS:HH:MM:ss.l',
    ignore: 'pid,hostname',
    sync: true,
  });
}

/** Returns the trace id of the line, if there is an active span. */
function traceOf(): object {
  const id = traceId();
  return id === null ? {} : { traceId: id };
}

const SECRET_FIELD =
  /^((proxy-)?authorization|(set-)?cookie|(x-)?api-?key|(spool-)?page-?key|.*(token|secret|password))$/i;
const HIDDEN = '[redacted]';

/** Deeper than any object that we log. Deeper values are redacted. */
const MAX_FIELD_DEPTH = 6;

/**
 * Returns a copy with the values of secret fields hidden, at any depth. pino's `redact` requires each path, so a field that is
 * logged one level deeper would leak.
 */
function hideSecretFields(value: unknown, depth = 0): unknown {
  // Errors have a separate serializer.
  if (typeof value !== 'object' || value === null || value instanceof Error) return value;
  if (depth === MAX_FIELD_DEPTH) return HIDDEN;
  if (Array.isArray(value)) return value.map((item) => hideSecretFields(item, depth + 1));
  if ('toJSON' in value) return value;
  const fields = Object.entries(value).map(([name, field]) => {
    const isSecret = SECRET_FIELD.test(name) && field !== undefined && field !== null;
    return [name, isSecret ? HIDDEN : hideSecretFields(field, depth + 1)];
  });
  return Object.fromEntries(fields);
}

/** Limits nested causes, which may be circular. */
const MAX_DEPTH = 8;

/** Limits messages and stacks, which may contain the whole response of a peer. Characters. */
const MAX_TEXT = 16_384;

const cut = (text: unknown): unknown =>
  typeof text !== 'string' || text.length <= MAX_TEXT
    ? text
    : `${text.slice(0, MAX_TEXT)}… (${text.length - MAX_TEXT} characters more)`;

/**
 * Returns only the properties named here, because pino's serializer writes every property of an error. ioredis adds the command,
 * which for AUTH is the password; pg the `detail`, which can be a row; TypeORM the parameters.
 */
function serializeError(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const { name, message, stack, code, cause, errors } = error as Record<string, unknown>;
  const { name: className } = error.constructor ?? {};
  const further = (other: unknown): unknown => (depth < MAX_DEPTH ? serializeError(other, depth + 1) : undefined);
  return {
    type: className === 'Object' ? name : className,
    message: cut(message),
    stack: cut(stack),
    code,
    cause: further(cause),
    errors: Array.isArray(errors) ? errors.map(further) : undefined,
  };
}
