import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { once } from 'node:events';
import type { Client, Reply } from './client.ts';
import type { Method } from './openapi-check.ts';

/** A request whose body is sent bit by bit: to be cut off, or measured half-way. */
export class RawRequest {
  private readonly request: ClientRequest;
  /** The answer, held against the OpenAPI document; rejects where the connection ends without one. */
  readonly reply: Promise<Reply>;
  private readonly answered: Promise<unknown>;

  constructor(
    private readonly client: Client,
    private readonly method: Method,
    private readonly path: string,
    headers: Record<string, string>,
  ) {
    this.request = request(`${client.baseUrl}${path}`, {
      method,
      agent: false,
      headers: { authorization: `Bearer ${client.token}`, ...headers },
    });
    this.reply = this.read();
    this.answered = this.reply.catch(() => undefined);
  }

  /** Waits until there is room for more. */
  async write(bytes: string | Buffer): Promise<void> {
    if (this.request.destroyed || this.request.write(bytes)) return;
    const waiting = new AbortController();
    const { signal } = waiting;
    // An answer may come before all is sent, and nobody takes the rest then.
    const room = [once(this.request, 'drain', { signal }), once(this.request, 'close', { signal }), this.answered];
    await Promise.race(room).finally(() => {
      room.forEach((event) => void event.catch(() => undefined));
      waiting.abort();
    });
  }

  end(bytes: string | Buffer = ''): Promise<Reply> {
    this.request.end(bytes);
    return this.reply;
  }

  /** As when the line breaks. */
  cut(): void {
    this.request.destroy();
  }

  private async read(): Promise<Reply> {
    const [message] = (await once(this.request, 'response')) as [IncomingMessage];
    // Whatever happens to what is still being sent.
    this.request.on('error', () => undefined);
    const chunks: Buffer[] = [];
    for await (const chunk of message) chunks.push(chunk as Buffer);
    const { statusCode = 0, headers } = message;
    const response = new Response(Buffer.concat(chunks), {
      status: statusCode,
      headers: headers as Record<string, string>,
    });
    return this.client.take(this.method, this.path, response);
  }
}

const BOUNDARY = 'contract-suite';

/** A multipart upload of one file, its bytes to be written. */
export function startUpload(
  client: Client,
  agentId: string,
  name: string,
): { upload: RawRequest; finish: () => Promise<Reply> } {
  const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}`, 'transfer-encoding': 'chunked' };
  const upload = new RawRequest(client, 'POST', `/agents/${agentId}/files`, headers);
  void upload.write(
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
      `Content-Type: application/octet-stream\r\n\r\n`,
  );
  return { upload, finish: () => upload.end(`\r\n--${BOUNDARY}--\r\n`) };
}
