import type { Result } from '@modelcontextprotocol/sdk/types.js';
import { BOUNDS } from '#domain';
import { pauseIfLong } from '#platform';
import { readTool, type ListedTool } from './read-tool.ts';

const MAX_LIST_BYTES = BOUNDS.toolServers.list.value;
const MAX_TOOLS = BOUNDS.toolServers.tools.value;
const MAX_PAGES = BOUNDS.toolServers.pages.value;

/** Thrown if one page of a server's list of tools is larger than the whole list may be. */
export class ListTooLarge extends Error {
  override name = 'ListTooLarge';
}

export const LIST_TOO_LARGE = `The list of tools is larger than ${MAX_LIST_BYTES} bytes, or has too many parts.`;

/** Thrown if the answer to `tools/list` has no list of tools. */
export class NoToolList extends Error {
  override name = 'NoToolList';
}

/** A server's list of tools, the reasons why entries were left out, and whether the list exceeded a limit. */
export interface ToolListing {
  tools: readonly ListedTool[];
  leftOut: readonly string[];
  isCut: boolean;
}

/** Reads a server's list of tools page by page, within limits on its bytes, tools and pages. */
export class ToolList {
  private received = 0;

  /** Bytes of the pages that are kept. */
  get bytes(): number {
    return Math.min(this.received, MAX_LIST_BYTES);
  }

  /** Counts bytes of the requested page. Must be called before `ask` resolves. */
  take(bytes: number): void {
    this.received += bytes;
  }

  /**
   * Reads the list up to its limits. Only one read may run at a time. `ask` resolves to a page as the server sent it. Rejects
   * with ListTooLarge, NoToolList, and as `ask` does.
   */
  async read(ask: (cursor: string | undefined) => Promise<Result>): Promise<ToolListing> {
    this.received = 0;
    const tools: ListedTool[] = [];
    const leftOut: string[] = [];
    let count = 0;
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const before = this.received;
      const found = await ask(cursor);
      // A page in the answer to another request has not been counted, so nothing limits its size.
      if (this.received === before) throw new ListTooLarge('A page of the list of tools came in the wrong answer.');
      if (this.received > MAX_LIST_BYTES) {
        if (page === 0) throw new ListTooLarge(LIST_TOO_LARGE);
        // The page that exceeds the limit is not kept. The transport limits how much of it is read.
        return { tools, leftOut, isCut: true };
      }
      const { nextCursor } = found;
      const given = listIn(found, page);
      if (given === null) leftOut.push(`Page ${page + 1} of the list of tools has no list, and is left out.`);
      cursor = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined;
      const room = MAX_TOOLS - count;
      for (const entry of given?.slice(0, room) ?? []) {
        await pauseIfLong();
        const tool = readTool(entry, count++);
        if (typeof tool === 'string') leftOut.push(tool);
        else tools.push(tool);
      }
      if (given !== null && given.length > room) return { tools, leftOut, isCut: true };
      if (cursor === undefined) return { tools, leftOut, isCut: false };
      if (count === MAX_TOOLS) break;
    }
    return { tools, leftOut, isCut: true };
  }
}

/**
 * Returns null for a later page that has something else than a list. Throws NoToolList for such a first page. Null is an empty
 * list, as Go writes it; so is nothing on a later page.
 */
function listIn({ tools }: Result, page: number): readonly unknown[] | null {
  if (Array.isArray(tools)) return tools as unknown[];
  if (tools === null || (tools === undefined && page > 0)) return [];
  if (page > 0) return null;
  throw new NoToolList('The field "tools" of the answer to tools/list is not a list.');
}
