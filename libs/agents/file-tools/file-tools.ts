import { z } from 'zod';
import { ARTIFACTS_FOLDER, ATTACHMENTS_FOLDER, BOUNDS, folderPath } from '#domain';
import { pauseIfLong } from '#platform';
import { FileRefused, type FolderFile, type Tool, type ToolContext, type ToolResult } from '../harness.ts';
import { editFile } from './edit-text.ts';
import { readFolderFile } from './read-file.ts';
import { readWhole } from './read-whole.ts';

const MAX_LISTED = BOUNDS.files.listed.value;
const MAX_EDITED_BYTES = BOUNDS.files.edited.value;

/** Copies of the old and of the new file that an edit holds in memory. */
const EDIT_COPIES = 2;

const path = z.string().describe('Relative path of the file, such as docs/plan.md.');

/**
 * The tools for the files of a Thread. They only change `files`, and those changes are committed together with the tool's
 * result. So each tool, also edit_file, may be repeated until it has a result.
 */
export const FILE_TOOLS: readonly Tool[] = [
  fileTool({
    name: 'list_files',
    readOnly: true,
    title: 'List files',
    description: `Lists the files with their sizes and types. Attachments of the user are in ${ATTACHMENTS_FOLDER}/, artifacts of tools in ${ARTIFACTS_FOLDER}/; both are read-only.`,
    input: z.strictObject({ path: z.string().optional().describe('Folder to list. Default: all files.') }),
    execute: async ({ path: folder = '' }, { files }) => listed(await files.list(), folder),
  }),
  fileTool({
    name: 'read_file',
    readOnly: true,
    title: 'Read a file',
    description:
      'Reads a text file, the text of a PDF or DOCX document, or shows an image. Returns at most 2,000 lines or 256 KiB at once; a note at the end says how to continue.',
    input: z.strictObject({
      path,
      offset: z.number().int().min(1).max(1e9).default(1).describe('First line to read, counted from 1.'),
      limit: z.number().int().min(1).max(100_000).default(2_000).describe('Maximum number of lines to read.'),
    }),
    execute: async ({ path: given, offset, limit }, context) =>
      readFolderFile(await findFile(given, context), { offset, limit }, context),
  }),
  fileTool({
    name: 'write_file',
    title: 'Write a file',
    description: 'Creates or replaces a whole file. Creates missing folders.',
    input: z.strictObject({ path, content: z.string().describe('Full text of the file.') }),
    execute: async ({ path: given, content }, { files }) => {
      const written = pathOf(given);
      const bytes = new TextEncoder().encode(content);
      await files.write(written, bytes);
      return answer(`Wrote ${written}, ${bytes.byteLength} bytes.`);
    },
  }),
  fileTool({
    name: 'edit_file',
    title: 'Edit a file',
    description:
      'Replaces text in a text file. old_text must match the file exactly and occur only once, unless replace_all is set.',
    input: z.strictObject({
      path,
      old_text: z.string().describe('Text to replace, including white space.'),
      new_text: z.string().describe('Text to insert instead.'),
      replace_all: z.boolean().default(false).describe('Replaces every occurrence.'),
    }),
    execute: async ({ path: given, old_text: oldText, new_text: newText, replace_all: replaceAll }, context) => {
      const file = await findFile(given, context);
      refuseUneditable(file);
      context.makeRoom(EDIT_COPIES * (file.size + editedBytes(file, { oldText, newText, replaceAll })));
      const bytes = await readWhole(context.files, file, MAX_EDITED_BYTES);
      const edited = await editFile(bytes, { oldText, newText, replaceAll, maxBytes: MAX_EDITED_BYTES }, context);
      if ('refused' in edited) throw new FileRefused(edited.refused);
      await context.files.write(file.path, edited.bytes);
      return answer(`Replaced ${edited.count} ${edited.count === 1 ? 'occurrence' : 'occurrences'} in ${file.path}.`);
    },
  }),
  fileTool({
    name: 'delete_file',
    title: 'Delete a file',
    description: 'Deletes a file.',
    input: z.strictObject({ path }),
    execute: async ({ path: given }, context) => {
      const { path: deleted } = await findFile(given, context);
      await context.files.remove(deleted);
      return answer(`Deleted ${deleted}.`);
    },
  }),
];

interface FileTool<Input extends z.ZodObject> extends Pick<Tool, 'name' | 'title' | 'description' | 'readOnly'> {
  input: Input;
  execute: (input: z.output<Input>, context: ToolContext) => Promise<ToolResult>;
}

function fileTool<Input extends z.ZodObject>({ input, execute, ...tool }: FileTool<Input>): Tool {
  const { $schema: _, ...inputSchema } = z.toJSONSchema(input, { io: 'input' });
  return {
    ...tool,
    inputSchema,
    policy: 'allow',
    idempotent: true,
    // The engine has refused invalid input before, so parsing only fills in defaults.
    execute: async (given, context) =>
      execute(input.parse(given), context).catch((error: unknown) => {
        if (error instanceof FileRefused) return { text: error.message, isError: true };
        throw error;
      }),
  };
}

const answer = (text: string): ToolResult => ({ text, isError: false });

/** Throws FileRefused. */
function pathOf(given: string): string {
  const found = folderPath(given);
  if ('refused' in found) throw new FileRefused(`The path ${found.refused}.`);
  return found.path;
}

/**
 * Returns the file at a path, or the only file whose path looks the same, because models write an ordinary space where macOS
 * uses a narrow one. Throws FileRefused.
 */
async function findFile(given: string, { files }: ToolContext): Promise<FolderFile> {
  const wanted = pathOf(given);
  const all = await files.list();
  const exact = all.find(({ path: of }) => of === wanted);
  if (exact !== undefined) return exact;
  const appearance = appearanceOf(wanted);
  const [similar, ...others] = await filterByAppearance(all, (of) => of === appearance);
  if (similar === undefined) throw new FileRefused(`There is no file ${wanted}.`);
  if (others.length === 0) return similar;
  const count = others.length + 1;
  throw new FileRefused(`There is no file ${wanted}. The paths of ${count} files differ from it only in their spaces.`);
}

/** Returns a path with ordinary spaces and without invisible characters. */
const appearanceOf = (path: string): string =>
  path
    .replaceAll(/\p{Zs}/gu, ' ')
    .replaceAll(/\p{Cf}/gu, '')
    .normalize('NFC');

/** Returns the files whose paths have a wanted appearance. Compares in slices, because a Thread can have many files. */
async function filterByAppearance(
  files: readonly FolderFile[],
  isWanted: (appearance: string) => boolean,
): Promise<FolderFile[]> {
  const found: FolderFile[] = [];
  for (const file of files) {
    await pauseIfLong();
    if (isWanted(appearanceOf(file.path))) found.push(file);
  }
  return found;
}

/** Throws FileRefused. */
async function listed(files: readonly FolderFile[], given: string): Promise<ToolResult> {
  const stripped = given.replace(/^(\.?\/|\.$)/, '').replace(/\/$/, '');
  const folder = stripped === '' ? '' : pathOf(stripped);
  const wanted = appearanceOf(folder);
  const isInFolder = (of: string): boolean => of === wanted || of.startsWith(`${wanted}/`);
  const inFolder = folder === '' ? files : await filterByAppearance(files, isInFolder);
  if (inFolder.length === 0) return answer(folder === '' ? 'There are no files.' : `There are no files in ${folder}.`);
  const lines = inFolder.slice(0, MAX_LISTED).map(({ path: of, size, mimeType, readOnly }) => {
    const about = [`${size} bytes`, ...(mimeType === null ? [] : [mimeType]), ...(readOnly ? ['read-only'] : [])];
    return `${of} (${about.join(', ')})`;
  });
  const left = inFolder.length - lines.length;
  if (left > 0) lines.push(`[${left} more files are not shown; list a single folder.]`);
  return answer(lines.join('\n'));
}

/** Returns the most bytes that a file can have after an edit. A UTF-16 unit takes at most 3 bytes. */
function editedBytes({ size }: FolderFile, edit: { oldText: string; newText: string; replaceAll: boolean }): number {
  const { oldText, newText, replaceAll } = edit;
  const most = replaceAll ? (size / Math.max(1, oldText.length)) * 3 * newText.length : 3 * newText.length;
  return Math.min(MAX_EDITED_BYTES, size + most);
}

/** Throws FileRefused. */
function refuseUneditable(file: FolderFile): void {
  if (file.readOnly) throw new FileRefused(`${file.path} is read-only.`);
  if (file.size > MAX_EDITED_BYTES) throw new FileRefused(`${file.path} is larger than ${MAX_EDITED_BYTES} bytes.`);
}
