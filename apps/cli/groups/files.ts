import type { ManagedFile } from '#contract';
import type { CommandSpec, Group } from '../command-spec.ts';
import type { Options } from '../options.ts';
import { OUTPUT, writeOutput } from '../output-file.ts';
import type { Paging } from '../session.ts';
import type { Column } from '../table.ts';
import { PAGING } from './paging.ts';

const columns: Column<ManagedFile>[] = [
  { head: 'id', value: ({ id }) => id },
  { head: 'kind', value: ({ kind }) => kind },
  { head: 'name', value: ({ name, path }) => path ?? name, cut: true },
  { head: 'type', value: ({ mimeType }) => mimeType, cut: true, wide: true },
  { head: 'bytes', value: ({ size }) => size },
  { head: 'run', value: ({ runId }) => runId, wide: true },
  { head: 'created', value: ({ createdAt }) => createdAt, wide: true },
];

export const threadFiles: CommandSpec<[string], Paging> = {
  usage: 'files <threadId>',
  description: 'List the attachments and artifacts of a Thread, newest first.',
  options: PAGING,
  examples: [['thread files 01JD0000000000000000000000']],
  async run(session, [threadId], paging) {
    await session.printPages(paging, columns, async (query) => {
      const { files, nextCursor } = await session.call('listThreadFiles', { params: { threadId }, query });
      return { rows: files, next: nextCursor };
    });
  },
};

const download: CommandSpec<[string], Options & { output?: string }> = {
  usage: 'download <fileId>',
  description: 'Download a file of a Thread.',
  options: [OUTPUT],
  examples: [
    ['file download 01JD0000000000000000000000 > report.pdf'],
    ['file download 01JD0000000000000000000000 --output report.pdf'],
  ],
  run: (session, [fileId], { output }) =>
    writeOutput(session, output, async (write) => {
      for await (const chunk of session.bytes('downloadFile', { params: { fileId } })) await write(chunk);
    }),
};

export const files: Group = {
  name: 'file',
  description: 'Files of all Threads.',
  commands: [download],
};
