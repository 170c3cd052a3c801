import mime from 'mime';
import { BOUNDS } from '#domain';
import { ownTurn, pauseIfLong } from '#platform';
import type { ToolContext, ToolResult } from '../harness.ts';
import { CallFailed } from './call-failed.ts';
import { decodeData } from './decode-data.ts';
import { hideInText, hideSecrets } from './hide-secrets.ts';
import { isMap, isPresent, type JsonMap } from './message.ts';

const MAX_URI = BOUNDS.toolCalls.uri.value;
const MAX_TYPE = BOUNDS.toolCalls.mimeType.value;
const LARGE_DATA = BOUNDS.toolCalls.data.value;
const MAX_FILES = BOUNDS.toolCalls.files.value;

const MAX_BLOCKS = BOUNDS.toolCalls.parts.value;

/** The result of a call as the server sent it. Its parts are checked when they are read. */
export interface ServerResult {
  content: readonly unknown[];
  structuredContent?: unknown;
  isError?: unknown;
}

/**
 * Returns the result with its first 1,000 parts. Throws CallFailed (`invalid`) for an answer whose content is neither a list of
 * parts nor one part.
 */
export function checkResult({ content: given, toolResult, ...rest }: JsonMap): ServerResult {
  const one = given ?? oldContent(toolResult);
  const content = typeof one === 'string' || isMap(one) ? [one] : one;
  if (!Array.isArray(content))
    throw new CallFailed(
      'invalid',
      new Error('The tool server returned an invalid result: its content is not a list.'),
    );
  const more = content.length - MAX_BLOCKS;
  if (more <= 0) return { ...rest, content };
  const last = { type: 'text', text: `[${more} more parts were left out: there are too many]` };
  return { ...rest, content: [...(content.slice(0, MAX_BLOCKS) as unknown[]), last] };
}

/** The field of the protocol's first version, which may have any value. */
function oldContent(toolResult: unknown): unknown {
  if (!isPresent(toolResult)) return [];
  return typeof toolResult === 'string' || Array.isArray(toolResult) ? toolResult : { type: 'json', json: toolResult };
}

type Keep = Pick<ToolContext, 'saveArtifact'>;

/** One part of a result: its text, and the file if it is an image that the model can be shown. */
interface Part {
  text: string;
  fileId?: string;
}

/**
 * Returns the tool result for models. Images, audio and binary resources become files of the Thread. An unknown or incomplete
 * part becomes one line.
 */
export async function readResult(
  { content, structuredContent, isError }: ServerResult,
  secrets: readonly string[],
  keep: Keep,
): Promise<ToolResult> {
  let parts: Part[] = [];
  let hasText = false;
  // One after the other: each may be megabytes.
  let files = 0;
  for (const given of content) {
    if (given === null) continue;
    await pauseIfLong();
    const block = blockOf(given);
    hasText ||= block['type'] === 'text' && isText(block['text']) && block['text'] !== '';
    if (isFile(block) && ++files > MAX_FILES) parts.push({ text: '[a file was left out: there are too many]' });
    else parts.push((await readBlock(block, keep, secrets)) ?? { text: unreadable(block) });
  }
  await pauseIfLong();
  if (!hasText && isPresent(structuredContent))
    parts = [{ text: JSON.stringify(structuredContent) }, ...parts.filter(({ text }) => text !== '')];
  const fileIds = parts.flatMap(({ fileId }) => fileId ?? []);
  const text = await hideInText(parts.map((part) => part.text).join('\n'), secrets);
  return { text, isError: isError === true, ...(fileIds.length > 0 && { fileIds }) };
}

/** Bytes of memory for each byte of a result: as received, and on its way to the transcript and the blob store. */
const BYTES_A_RESULT_BYTE = 3;

/** Returns the memory that reading a result takes, bytes. */
export function resultBytes({ content }: ServerResult): number {
  return BYTES_A_RESULT_BYTE * content.reduce<number>((sum, block) => sum + blockBytes(block), 0);
}

function blockBytes(block: unknown): number {
  if (isText(block)) return block.length;
  if (!isMap(block)) return 0;
  const { text, data, uri, resource } = block;
  const own = [text, data, uri].reduce<number>((sum, part) => sum + (typeof part === 'string' ? part.length : 0), 0);
  if (!isMap(resource)) return own;
  return own + (textOf(resource['text']) ?? textOf(resource['blob']) ?? '').length;
}

const isText = (value: unknown): value is string => typeof value === 'string';
const textOf = (value: unknown): string | undefined => (isText(value) ? value : undefined);

/** The block that a part of a result is meant as: texts come without a type, and values as JSON. */
function blockOf(given: unknown): JsonMap {
  if (isText(given)) return { type: 'text', text: given };
  if (!isMap(given)) return {};
  const { type, text, json } = given;
  if (!isPresent(type) && isText(text)) return { type: 'text', text };
  return type === 'json' && isPresent(json) ? { type: 'text', text: JSON.stringify(json) } : given;
}

function isFile({ type, resource }: JsonMap): boolean {
  if (type === 'image' || type === 'audio') return true;
  return type === 'resource' && isMap(resource) && typeof resource['text'] !== 'string';
}

/** Returns null for a part of an unknown type, or with a required field missing. */
async function readBlock(block: JsonMap, keep: Keep, secrets: readonly string[]): Promise<Part | null> {
  const { type, text, data, mimeType, name, uri, resource } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? { text } : null;
    case 'image':
    case 'audio':
      return keepFile(keep, { data, mimeType, nameOf: (kind) => fileName(type, kind) });
    case 'resource_link':
      return typeof uri === 'string' ? { text: `[link: ${[textOf(name), uri].filter(Boolean).join(', ')}]` } : null;
    case 'resource':
      return isMap(resource) ? readResource(resource, keep, secrets) : null;
    default:
      return null;
  }
}

/** Returns one line, whatever characters the types have that the server sent. */
function unreadable({ type, mimeType }: JsonMap): string {
  const shown = [type, mimeType].map((part) =>
    (textOf(part) ?? '').slice(0, MAX_TYPE).replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]/gu, ' '),
  );
  return `[${['a part that cannot be read', ...shown.filter(Boolean)].join(', ')}]`;
}

async function readResource(resource: JsonMap, keep: Keep, secrets: readonly string[]): Promise<Part | null> {
  const given = textOf(resource['uri']) ?? '';
  const uri = given.length > MAX_URI ? '' : given;
  const { text, blob, mimeType } = resource;
  if (typeof text === 'string') return { text: `[resource: ${uri}]\n${text}` };
  const nameOf = (kind: string | undefined): string =>
    nameOfUri(hideSecrets(uri, secrets)) ?? fileName('resource', kind);
  return keepFile(keep, { data: blob, mimeType, nameOf });
}

interface KeptFile {
  /** The bytes as base64, base64url or a data URI. */
  data: unknown;
  mimeType: unknown;
  nameOf: (mimeType: string | undefined) => string;
}

async function keepFile({ saveArtifact }: Keep, { data, mimeType: given, nameOf }: KeptFile): Promise<Part | null> {
  if (typeof data !== 'string') return null;
  // Decoding, hashing and storing it are steps of milliseconds each.
  if (data.length > LARGE_DATA) await ownTurn();
  const decoded = decodeData(data);
  if (decoded === null) return null;
  if (data.length > LARGE_DATA) await ownTurn();
  const mimeType = [given, decoded.mimeType].find(isType);
  const name = nameOf(mimeType);
  const { fileId } = await saveArtifact({ name, mimeType: mimeType ?? null, bytes: decoded.bytes });
  const [kind = ''] = mimeType?.split('/') ?? [];
  const what = kind === 'image' || kind === 'audio' ? kind : 'file';
  const text = `[${what}: ${[name, mimeType].filter(Boolean).join(', ')}, file ${fileId}]`;
  return what === 'image' ? { text, fileId } : { text };
}

const isType = (given: unknown): given is string =>
  typeof given === 'string' && given.length > 0 && given.length <= MAX_TYPE;

function fileName(base: string, mimeType: string | undefined): string {
  const extension = mimeType === undefined ? null : mime.getExtension(mimeType);
  return extension === null ? base : `${base}.${extension}`;
}

/** Returns the last segment of the URI's path if it can be a file name, else null. */
function nameOfUri(uri: string): string | null {
  const [path = ''] = uri.split(/[?#]/, 1);
  const last = path.split('/').at(-1) ?? '';
  const name = decoded(last)
    .replaceAll(/[\p{Cc}/\\]/gu, '_')
    .slice(0, 200);
  return /^\.*$/.test(name) ? null : name;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
