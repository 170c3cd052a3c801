import { pino, type DestinationStream, type Logger, type LoggerOptions } from 'pino';

export type { Logger };

/** JSON lines on standard output; secrets never get there, whatever an object carries. */
export function createLogger(level: string, name: string, destination?: DestinationStream): Logger {
  const options: LoggerOptions = {
    name,
    level,
    redact: {
      paths: ['req.headers.authorization', 'headers.authorization', 'authorization', 'token'],
      censor: '[redacted]',
    },
    serializers: { err: (error: unknown) => serializeError(error) },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  };
  return destination ? pino(options, destination) : pino(options);
}

/** Causes may be circular. */
const MAX_DEPTH = 8;

/**
 * What is named here and nothing else. pino's own serializer writes every property of an error: ioredis hangs the command
 * on it, which for AUTH is the password; pg the `detail`, which can be a row; TypeORM the parameters.
 */
function serializeError(error: unknown, depth = 0): unknown {
  if (typeof error !== 'object' || error === null) return error;
  const { name, message, stack, code, cause, errors } = error as Record<string, unknown>;
  const { name: className } = error.constructor ?? {};
  const further = (other: unknown): unknown => (depth < MAX_DEPTH ? serializeError(other, depth + 1) : undefined);
  return {
    type: className === 'Object' ? name : className,
    message,
    stack,
    code,
    cause: further(cause),
    errors: Array.isArray(errors) ? errors.map(further) : undefined,
  };
}
