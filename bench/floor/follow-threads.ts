import type { ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import type { Pool } from 'pg';
import { recordingStore } from '../threads.ts';
import type { FloorQueue } from './queue.ts';

interface Reader {
  threadId: string;
  response: ServerResponse;
  lastId: string;
  reading: boolean;
  woken: boolean;
}

interface LogRow {
  id: string;
  type: string;
}

const LIMIT = 1_000;
const MAX_BYTES = 1024 ** 3;

/** The hand-written stream: what is there, then what each wake-up brings, until the Run has completed. */
export async function followThreads(
  pool: Pool,
  { redisUrl, name }: FloorQueue,
): Promise<(threadId: string, response: ServerResponse) => void> {
  const readers = new Map<string, Reader>();
  const { store, statements } = recordingStore();
  await store.readLogAfter('', '', { maxEvents: LIMIT });
  const [readLog] = statements;
  if (readLog === undefined) throw new Error('nothing was recorded');

  const readOn = async (reader: Reader): Promise<void> => {
    reader.woken = true;
    if (reader.reading) return;
    reader.reading = true;
    while (reader.woken) {
      reader.woken = false;
      const { rows } = await pool.query<LogRow>({
        ...readLog,
        values: [reader.threadId, reader.lastId, LIMIT, MAX_BYTES, false],
      });
      for (const row of rows) {
        reader.response.write(`event: thread.event\nid: ${row.id}\ndata: ${JSON.stringify(row)}\n\n`);
        reader.lastId = row.id;
      }
      if (rows.some(({ type }) => type === 'run.completed')) return end(reader);
    }
    reader.reading = false;
  };
  const end = ({ threadId, response }: Reader): void => {
    readers.delete(threadId);
    response.end('event: thread.idle\ndata: {}\n\n');
  };

  const subscriber = new Redis(redisUrl);
  await subscriber.subscribe(name);
  subscriber.on('message', (_channel: string, threadId: string) => {
    const reader = readers.get(threadId);
    if (reader !== undefined) void readOn(reader);
  });
  return (threadId, response) => {
    response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    const reader: Reader = { threadId, response, lastId: '', reading: false, woken: false };
    readers.set(threadId, reader);
    void readOn(reader);
  };
}
