import { Table, Text } from '@mantine/core';
import { IconDownload } from '@tabler/icons-react';
import { usePages } from '../api/use-pages.ts';
import { Ago } from '../components/ago.tsx';
import { formatBytes, formatCount } from '../components/format.ts';
import { LoadMore } from '../components/load-more.tsx';
import { QueryState } from '../components/query-state.tsx';
import { ShortId } from '../components/short-id.tsx';
import classes from '../components/parts.module.css';
import { RecordRow, RecordTable } from '../components/record-table.tsx';
import { DownloadLink } from './download-link.tsx';

/** The attachments and artifacts of a Thread, newest first. */
export function ThreadFiles({ threadId }: { threadId: string }) {
  const files = usePages('/threads/{threadId}/files', { params: { threadId } }, 'files', { refetchInterval: 10_000 });
  return (
    <>
      <QueryState query={files.query} isEmpty={(items) => items.length === 0} empty="No files.">
        {(items) => (
          <RecordTable
            aria-label="Files of this Thread"
            minWidth={640}
            columns={['Name', 'Kind', 'Size', 'Type', 'Created by', 'Created']}
          >
            {items.map((file) => (
              <RecordRow key={file.id}>
                <Table.Td maw={320}>
                  <DownloadLink file={file} size="sm" ta="left" className={classes.breakable}>
                    <IconDownload size={14} aria-hidden /> {file.name}
                  </DownloadLink>
                </Table.Td>
                <Table.Td>{file.kind === 'attachment' ? 'Attachment' : 'Artifact'}</Table.Td>
                <Table.Td title={`${formatCount(file.size)} bytes`}>{formatBytes(file.size)}</Table.Td>
                <Table.Td maw={180}>
                  <Text size="sm" truncate title={file.mimeType ?? undefined}>
                    {file.mimeType ?? '–'}
                  </Text>
                </Table.Td>
                <Table.Td>
                  {file.runId === null ? 'Caller' : <ShortId id={file.runId} of="Run" to={`/runs/${file.runId}`} />}
                </Table.Td>
                <Table.Td>
                  <Ago time={file.createdAt} />
                </Table.Td>
              </RecordRow>
            ))}
          </RecordTable>
        )}
      </QueryState>
      <LoadMore pages={files} />
    </>
  );
}
