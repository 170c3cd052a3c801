import {
  AudioContentSchema,
  CallToolResultSchema,
  ContentBlockSchema,
  EmbeddedResourceSchema,
  ImageContentSchema,
  ResourceLinkSchema,
  TextContentSchema,
  type CallToolResult,
  type ContentBlock,
  type EmbeddedResource,
} from '@modelcontextprotocol/sdk/types.js';
import mime from 'mime';
import { ownTurn, pauseIfLong } from '#platform';
import type { ToolContext, ToolResult } from '../harness.ts';
import { hideInText, hideSecrets } from './hide-secrets.ts';

/** Of a resource, UTF-16 units: what is longer names nothing. */
const MAX_URI = 8 * 1024;
/** Of a MIME type likewise. */
const MAX_TYPE = 255;
/** Larger base64 is decoded in a turn of the event loop of its own. */
const LARGE_DATA = 256 * 1024;
/** Of one result: each is an upload and a row. */
const MAX_FILES = 100;

/** Of one result: each is checked and read. */
const MAX_BLOCKS = 1_000;

const BLOCKS = {
  text: TextContentSchema,
  image: ImageContentSchema,
  audio: AudioContentSchema,
  resource_link: ResourceLinkSchema,
  resource: EmbeddedResourceSchema,
};

/**
 * Checks a server's result in slices, up to the first block that does not fit. Rejects as zod. The SDK would check all of it in
 * one turn, against five schemas.
 */
export async function checkResult(given: Record<string, unknown>): Promise<CallToolResult> {
  const all = given['content'];
  const result = CallToolResultSchema.parse({ ...given, content: Array.isArray(all) ? [] : all });
  if (!Array.isArray(all)) return result;
  for (const block of all.slice(0, MAX_BLOCKS)) result.content.push(await checkBlock(block));
  const more = all.length - MAX_BLOCKS;
  if (more > 0) result.content.push({ type: 'text', text: `[${more} parts are not kept: there are too many]` });
  return result;
}

async function checkBlock(block: unknown): Promise<ContentBlock> {
  if (typeof block !== 'object' || block === null) return ContentBlockSchema.parse(block);
  // Nobody reads these, and each may have thousands of parts.
  const { annotations: _a, icons: _i, _meta: _m, ...rest } = block as Record<string, unknown>;
  const { type } = rest;
  const isKnown = typeof type === 'string' && Object.hasOwn(BLOCKS, type);
  // Checking base64 decodes it.
  await (isLarge(rest) ? ownTurn() : pauseIfLong());
  return (isKnown ? BLOCKS[type as keyof typeof BLOCKS] : ContentBlockSchema).parse(rest);
}

function isLarge({ data, resource }: Record<string, unknown>): boolean {
  const found = data ?? (resource as { blob?: unknown } | null | undefined)?.blob;
  return typeof found === 'string' && found.length > LARGE_DATA;
}

type Keep = Pick<ToolContext, 'saveArtifact'>;

/** What is left of one block of a result: a line or more, and the file if it is an image that the model can be shown. */
interface Part {
  text: string;
  fileId?: string;
}

/** A server's result as models are given it. Images, sounds and binary resources become files of the Thread. */
export async function readResult(
  { content, structuredContent, isError = false }: CallToolResult,
  secrets: readonly string[],
  keep: Keep,
): Promise<ToolResult> {
  const parts: Part[] = [];
  // One after the other: each may be megabytes.
  let files = 0;
  for (const block of content) {
    if (isFile(block) && ++files > MAX_FILES) parts.push({ text: '[a file that is not kept: there are too many]' });
    else parts.push(await readBlock(block, keep, secrets));
  }
  const said = content.some(({ type }) => type === 'text');
  await pauseIfLong();
  if (!said && structuredContent !== undefined) parts.unshift({ text: JSON.stringify(structuredContent) });
  const fileIds = parts.flatMap(({ fileId }) => fileId ?? []);
  const text = await hideInText(parts.map((part) => part.text).join('\n'), secrets);
  return { text, isError, ...(fileIds.length > 0 && { fileIds }) };
}

/** Bytes of memory for each of a result: as it came, and as it is on its way to the transcript and the blob store. */
const BYTES_A_RESULT_BYTE = 3;

/** The memory that reading a result takes. */
export function resultBytes({ content }: CallToolResult): number {
  return BYTES_A_RESULT_BYTE * content.reduce((sum, block) => sum + blockBytes(block), 0);
}

function blockBytes(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
      return block.text.length;
    case 'image':
    case 'audio':
      return block.data.length;
    case 'resource':
      return 'text' in block.resource ? block.resource.text.length : block.resource.blob.length;
    case 'resource_link':
      return block.uri.length;
  }
}

function isFile(block: ContentBlock): boolean {
  return block.type === 'image' || block.type === 'audio' || (block.type === 'resource' && 'blob' in block.resource);
}

async function readBlock(block: ContentBlock, keep: Keep, secrets: readonly string[]): Promise<Part> {
  switch (block.type) {
    case 'text':
      return { text: block.text };
    case 'image':
    case 'audio':
      return keepFile(keep, { data: block.data, mimeType: block.mimeType, name: fileName(block.type, block.mimeType) });
    case 'resource_link':
      return { text: `[link: ${block.name}, ${block.uri}]` };
    case 'resource':
      return readResource(block.resource, keep, secrets);
  }
}

async function readResource(
  resource: EmbeddedResource['resource'],
  keep: Keep,
  secrets: readonly string[],
): Promise<Part> {
  const { mimeType } = resource;
  const uri = resource.uri.length > MAX_URI ? '' : resource.uri;
  if ('text' in resource) return { text: `[resource: ${uri}]\n${resource.text}` };
  const name = nameOfUri(hideSecrets(uri, secrets)) ?? fileName('resource', mimeType);
  return keepFile(keep, { data: resource.blob, mimeType, name });
}

interface KeptFile {
  /** Base64. */
  data: string;
  mimeType: string | undefined;
  name: string;
}

async function keepFile({ saveArtifact }: Keep, { data, mimeType: given = '', name }: KeptFile): Promise<Part> {
  const mimeType = given.length > 0 && given.length <= MAX_TYPE ? given : undefined;
  // Decoding, hashing and storing it are steps of milliseconds each.
  if (data.length > LARGE_DATA) await ownTurn();
  const bytes = Buffer.from(data, 'base64');
  if (data.length > LARGE_DATA) await ownTurn();
  const { fileId } = await saveArtifact({ name, mimeType: mimeType ?? null, bytes });
  const [kind = ''] = mimeType?.split('/') ?? [];
  const what = kind === 'image' || kind === 'audio' ? kind : 'file';
  const text = `[${what}: ${[name, mimeType].filter(Boolean).join(', ')}, file ${fileId}]`;
  return what === 'image' ? { text, fileId } : { text };
}

function fileName(base: string, mimeType: string | undefined): string {
  const extension = mimeType === undefined ? null : mime.getExtension(mimeType);
  return extension === null ? base : `${base}.${extension}`;
}

/** The last part of its path, as far as it can be a file's name. */
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
