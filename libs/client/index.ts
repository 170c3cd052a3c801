export { SpoolError, type ErrorCode } from './errors.ts';
export type { Files, Upload, UploadOptions } from './files.ts';
export type { Progress } from './progress.ts';
export type { Answer, AnswerOptions, Run } from './run.ts';
export { Spool, type Agent, type ListOptions, type SpoolOptions, type ThreadOptions } from './spool.ts';
export type { MessagesOptions, SendOptions, Thread } from './thread.ts';
export type { StreamOptions, StreamStatus, ThreadStream } from './thread-stream.ts';
export type { GetToken } from './token-source.ts';
export type * from './types.ts';
export {
  currentRun,
  openQuestions,
  reduceThread,
  type CurrentRun,
  type Message,
  type MessagePart,
  type OpenQuestion,
  type ThreadMessages,
  type ThreadUsage,
} from '../domain/reduce-thread.ts';
