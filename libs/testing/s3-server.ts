import type { AddressInfo } from 'node:net';

const BUCKET = 'spool-test';

/** An S3 server in this process, on loopback, with one bucket. It takes any credentials, and sets some for this process. */
export interface S3Server {
  port: number;
  /** What BLOB_URL is for it, through another port where one is given. */
  blobUrl(port?: number): string;
  /** Keys of the multipart uploads that were begun and neither completed nor aborted. */
  openUploads(): string[];
  /** Bytes of objects and parts that have come in whole. */
  receivedBytes(): number;
  stop(): Promise<void>;
}

/**
 * fauxqs, the one S3 server of npm that runs on Node 20 and can abort multipart uploads (s3rver and its fork cannot). It
 * cannot list them, which this adds, from what goes over its wire. It checks no signatures.
 */
export async function startS3Server(): Promise<S3Server> {
  process.env['AWS_ACCESS_KEY_ID'] ??= 'any';
  process.env['AWS_SECRET_ACCESS_KEY'] ??= 'any';
  // Only where it is wanted: it takes long to load.
  const { buildApp } = await import('fauxqs');
  const uploads = new Map<string, string>();
  let received = 0;
  const app = buildApp({ logger: false });
  app.addHook('onRequest', async (request, reply) => {
    const query = request.query as Record<string, string>;
    if (request.method === 'GET' && 'uploads' in query) {
      return reply.type('application/xml').send(listUploads(uploads, query['prefix'] ?? ''));
    }
  });
  app.addHook('preHandler', async (request) => {
    if (request.method === 'PUT') received += (request.body as Buffer | undefined)?.byteLength ?? 0;
  });
  app.addHook('onSend', async (request, reply, answer) => {
    const { uploads: begun, uploadId } = request.query as Record<string, string>;
    if (reply.statusCode >= 300) return;
    if (request.method === 'POST' && begun !== undefined) {
      const [, id] = /<UploadId>(.+)<\/UploadId>/.exec(String(answer))!;
      uploads.set(id!, (request.params as Record<string, string>)['*']!);
    }
    if (request.method !== 'PUT' && uploadId !== undefined) uploads.delete(uploadId);
  });
  await app.listen({ port: 0, host: '127.0.0.1' });
  const { port } = app.server.address() as AddressInfo;
  app.server.unref(); // a spec that fails before it has this must still end
  await fetch(`http://127.0.0.1:${port}/${BUCKET}`, { method: 'PUT' });
  return {
    port,
    blobUrl: (through = port) => `s3://${BUCKET}/some/folder?endpoint=http://127.0.0.1:${through}`,
    openUploads: () => [...uploads.values()],
    receivedBytes: () => received,
    stop: () => app.close(),
  };
}

function listUploads(uploads: ReadonlyMap<string, string>, prefix: string): string {
  const matching = [...uploads].filter(([, key]) => key.startsWith(prefix));
  const rows = matching.map(([id, key]) => `<Upload><Key>${key}</Key><UploadId>${id}</UploadId></Upload>`);
  return `<ListMultipartUploadsResult><Bucket>${BUCKET}</Bucket>${rows.join('')}</ListMultipartUploadsResult>`;
}
