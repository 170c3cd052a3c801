import {
  ListToolsResultSchema,
  ToolSchema,
  type Result,
  type Tool as ListedTool,
} from '@modelcontextprotocol/sdk/types.js';
import { pauseIfLong } from '#platform';

/** Of all pages together: descriptions and schemas are given to models, and are kept while the connection is. */
export const MAX_LIST_BYTES = 2 * 1024 * 1024;
const MAX_TOOLS = 1_000;
const MAX_PAGES = 100;

/** One page of a server's list of tools is larger than the whole list may be. */
export class ListTooLarge extends Error {
  override name = 'ListTooLarge';
}

export const LIST_TOO_LARGE = `The list of tools is larger than ${MAX_LIST_BYTES} bytes, or has too many parts.`;

/** Reads a server's list of tools, page by page, as far as it may go: bytes, tools and pages are bounded in total. */
export class ToolList {
  private received = 0;

  /** Bytes of the pages that are kept. */
  get bytes(): number {
    return Math.min(this.received, MAX_LIST_BYTES);
  }

  /** Counts bytes of the page that is asked for. To be called before `ask` resolves. */
  take(bytes: number): void {
    this.received += bytes;
  }

  /**
   * The tools, and whether there are more. One at a time. `ask` resolves to a page as it came. Rejects as `ask`, with
   * ListTooLarge, and as zod.
   */
  async read(ask: (cursor: string | undefined) => Promise<Result>): Promise<{ tools: ListedTool[]; isCut: boolean }> {
    this.received = 0;
    const tools: ListedTool[] = [];
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page++) {
      const before = this.received;
      const found = await ask(cursor);
      // Nothing bounds a page that came in another answer than that to the request.
      if (this.received === before) throw new ListTooLarge('A page of the list of tools came in the wrong answer.');
      if (this.received > MAX_LIST_BYTES) {
        if (page === 0) throw new ListTooLarge(LIST_TOO_LARGE);
        // A page that goes beyond the bound is not kept: what is read of one is bounded on its way.
        return { tools, isCut: true };
      }
      const given = listOf(found);
      cursor = ListToolsResultSchema.parse({ ...found, tools: [] }).nextCursor;
      for (const tool of given.slice(0, MAX_TOOLS - tools.length + 1)) {
        await pauseIfLong();
        tools.push(checkTool(tool));
      }
      if (cursor === undefined || tools.length > MAX_TOOLS) break;
    }
    return { tools: tools.slice(0, MAX_TOOLS), isCut: tools.length > MAX_TOOLS || cursor !== undefined };
  }
}

function listOf({ tools }: Result): readonly unknown[] {
  return Array.isArray(tools) ? tools : ListToolsResultSchema.parse({ tools }).tools;
}

function checkTool(tool: unknown): ListedTool {
  if (typeof tool !== 'object' || tool === null) return ToolSchema.parse(tool);
  // Nobody reads these, and each may have thousands of parts.
  const { icons: _i, _meta: _m, outputSchema: _o, ...rest } = tool as Record<string, unknown>;
  const misfit = misfitOf(rest['inputSchema']);
  return ToolSchema.parse(misfit === null ? rest : { ...rest, inputSchema: { type: 'object', ...misfit } });
}

/** The first entry of a schema's lists that does not fit, because zod would describe each of thousands; null for none. */
function misfitOf(schema: unknown): object | null {
  const { required, properties } = (schema ?? {}) as { required?: unknown; properties?: unknown };
  if (Array.isArray(required) && required.some((name) => typeof name !== 'string')) return { required: [null] };
  const isMap = typeof properties === 'object' && properties !== null;
  const property = isMap && Object.entries(properties).find(([, of]) => typeof of !== 'object' || of === null);
  return property ? { properties: Object.fromEntries([property]) } : null;
}
