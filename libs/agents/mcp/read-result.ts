import type { CallToolResult, ContentBlock, EmbeddedResource } from '@modelcontextprotocol/sdk/types.js';
import mime from 'mime';
import type { ToolContext, ToolResult } from '../harness.ts';
import { hideSecrets } from './hide-secrets.ts';

/** Of one result: each is an upload and a row. */
const MAX_FILES = 100;

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
  if (!said && structuredContent !== undefined) parts.unshift({ text: JSON.stringify(structuredContent) });
  const fileIds = parts.flatMap(({ fileId }) => fileId ?? []);
  const text = hideSecrets(parts.map((part) => part.text).join('\n'), secrets);
  return { text, isError, ...(fileIds.length > 0 && { fileIds }) };
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
  const { uri, mimeType } = resource;
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

async function keepFile({ saveArtifact }: Keep, { data, mimeType, name }: KeptFile): Promise<Part> {
  const bytes = Buffer.from(data, 'base64');
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
  const last =
    uri
      .replace(/[?#].*$/, '')
      .split('/')
      .at(-1) ?? '';
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
