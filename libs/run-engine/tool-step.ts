import {
  FileRefused,
  HarnessError,
  NoRoom,
  type RunContext,
  type Tool,
  type ToolContext,
  type ToolResult,
} from '#agents';
import {
  BOUNDS,
  beginningOf,
  removeCitations,
  storableText,
  type RecordedFact,
  type ToolCall,
  type ToolCompleted,
} from '#domain';
import { BlobStoreUnavailable, storeArtifact, type BlobKeeper, type FolderChanges, type PreparedFile } from '#files';
import { isDatabaseUnavailable, untilAborted, type Logger } from '#platform';
import { SETTLEMENTS, type Settlement } from './next-action.ts';
import { causeOf } from './cause-of.ts';
import type { ToolFileRefusal } from './claim.ts';
import { newFileFacts, StagedFolder } from './staged-folder.ts';
import { cutUtf8, mapTexts } from './stored-text.ts';
import type { ThreadFolder } from './thread-folder.ts';
import { countStep } from './metrics.ts';

const MAX_SUMMARY_BYTES = BOUNDS.toolCalls.summary.value;
const SUMMARIZED = BOUNDS.toolCalls.summarized.value;
const MAX_RESULT_BYTES = BOUNDS.toolCalls.result.value;
const CUT_NOTE = '\n[The rest of the result was cut off: it is too large.]';

export interface ToolOutcome {
  facts: RecordedFact[];
  /** Rows of the files that the tool made, for the same append as the facts. */
  files: PreparedFile[];
  /** The tool's changes of the folder, for the same append. The folder may have changed since the tool looked. */
  folder?: FolderChanges | undefined;
  /** Returns the outcome after a refusal: without the changes of the folder, and without the files if the quota is full. */
  refused: (why: ToolFileRefusal) => Promise<ToolOutcome>;
}

export interface ToolStepParts {
  /** Largest file that a tool may make, bytes. */
  maxFileBytes: number;
  blobs: BlobKeeper;
  logger: Logger;
  holder: string;
}

/**
 * Runs one call once. Every failure of the tool is an outcome. Throws the signal's reason. Throws `storage_unavailable`, which is
 * retryable, if an artifact could not be stored.
 */
export async function takeToolStep(
  { blobs, maxFileBytes, logger, holder }: ToolStepParts,
  tool: Tool,
  call: ToolCall,
  context: RunContext & Pick<ToolContext, 'makeRoom'> & { files: ThreadFolder },
): Promise<ToolOutcome> {
  const files: PreparedFile[] = [];
  const folder = new StagedFolder(context.files);
  let notStored: unknown = null;
  const toolContext: ToolContext = {
    ...context,
    files: folder,
    toolCallId: call.toolCallId,
    saveArtifact: async ({ mimeType, ...artifact }) => {
      // Used only if the bytes and the name do not tell the type, because it may come from a tool server.
      const source = { ...artifact, declaredType: mimeType ?? '', maxBytes: maxFileBytes };
      const file = await storeArtifact(blobs, context.runId, source).catch((error: unknown) => {
        if (error instanceof BlobStoreUnavailable || isDatabaseUnavailable(error)) notStored = error;
        throw error;
      });
      files.push(file);
      return { fileId: file.id };
    },
  };
  const startedAt = performance.now();
  const counted = countStep('tool');
  let result: ToolResult;
  try {
    // The async function also catches what a tool throws synchronously.
    result = await untilAborted((async () => tool.execute(call.toolInput, toolContext))(), context.signal);
  } catch (error) {
    counted(context.signal.aborted ? 'stopped' : 'error');
    context.signal.throwIfAborted();
    await folder.drop();
    if (notStored !== null) throw new HarnessError('storage_unavailable', { cause: notStored });
    // The model cannot handle unavailable files.
    if (error instanceof HarnessError && error.code === 'storage_unavailable') throw error;
    logger.warn({ err: error, ...namesOf(context), toolName: call.toolName }, 'tool failed');
    const isKnown = error instanceof HarnessError || error instanceof FileRefused || error instanceof NoRoom;
    const cause = error instanceof FileRefused || error instanceof NoRoom ? {} : { cause: causeOf(error, holder) };
    result = { text: isKnown ? error.message : 'The tool failed.', isError: true, ...cause };
  }
  counted(result.isError ? 'error' : 'ok');
  const durationMs = Math.round(performance.now() - startedAt);
  // A result that is an error changes no files.
  if (result.isError) await folder.drop();
  const made = [...files];
  const completed = completedFact(call, result.isError ? 'error' : 'ok', result, durationMs);
  const refused = async (why: ToolFileRefusal): Promise<ToolOutcome> => {
    const text = folder.refusalOf(why);
    await folder.drop();
    const isFull = why === 'quota_full' || why === 'artifacts_full';
    const kept = isFull ? [] : made;
    if (isFull) await blobs.discard(made.map(({ blob_key }) => blob_key));
    const error = completedFact(call, 'error', { text }, durationMs);
    return { facts: [...kept.flatMap(newFileFacts), error], files: kept, refused };
  };
  const facts = [...made.flatMap(newFileFacts), ...(await folder.facts()), completed];
  return { facts, files: made, folder: folder.changes(), refused };
}

const namesOf = ({ threadId, runId, attempt }: RunContext) => ({ threadId, runId, attempt });

/** Returns the result of a call that was not run. */
export function settledFact(call: ToolCall, as: Settlement, detail?: string): RecordedFact {
  const { outcome, text } = SETTLEMENTS[as];
  return completedFact(call, outcome, { text: detail === undefined ? text : `${text} ${detail}` }, null);
}

/** Returns the call as the public log shows it. */
export function publicCall(call: ToolCall): ToolCall {
  return { ...call, toolInput: mapTexts(call.toolInput, withoutCitations) };
}

function completedFact(
  { toolCallId, toolName }: ToolCall,
  outcome: ToolCompleted['outcome'],
  { text, fileIds = [], cause }: Pick<ToolResult, 'text' | 'fileIds' | 'cause'>,
  durationMs: number | null,
): RecordedFact {
  const result = storedResult(text);
  const summary = cutUtf8(withoutCitations(beginningOf(result, SUMMARIZED)), MAX_SUMMARY_BYTES, '…');
  const optional = { ...(fileIds.length > 0 ? { fileIds } : {}), ...(cause === undefined ? {} : { cause }) };
  return { type: 'tool.completed', data: { toolCallId, toolName, outcome, summary, result, durationMs, ...optional } };
}

function storedResult(text: string): string {
  // Cuts first, because making 16 MiB storable takes 70 ms.
  const beginning = beginningOf(text, 2 * MAX_RESULT_BYTES);
  const mark = beginning.length < text.length ? CUT_NOTE : '';
  return cutUtf8(storableText(beginning) + mark, MAX_RESULT_BYTES, CUT_NOTE);
}

function withoutCitations(text: string): string {
  return removeCitations(text).text;
}
