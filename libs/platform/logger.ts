import { pino, type Logger, type LoggerOptions } from 'pino';

export type { Logger };

/** JSON lines on standard output; secrets never get there, whatever an object carries. */
export function createLogger(level: string, name: string): Logger {
  const options: LoggerOptions = {
    name,
    level,
    redact: {
      paths: ['req.headers.authorization', 'headers.authorization', 'authorization', 'token'],
      censor: '[redacted]',
    },
    timestamp: () => `,"time":"${new Date().toISOString()}"`,
    formatters: { level: (label) => ({ level: label }) },
  };
  return pino(options);
}
