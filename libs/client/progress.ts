/** How much of a file has been sent, bytes. */
export interface Progress {
  sentBytes: number;
  totalBytes: number;
}

interface Sent {
  url: URL;
  init: RequestInit;
  form: FormData;
  /** Called with the number of sent bytes of the body. */
  onSent: (bytes: number) => void;
}

/** Sends a form as `fetch` does, and reports its progress. `fetch` itself cannot, in browsers. */
export function sendWithProgress(sent: Sent, fetch: typeof globalThis.fetch): Promise<Response> {
  return 'XMLHttpRequest' in globalThis ? sendByXhr(sent) : sendAsStream(sent, fetch);
}

function sendByXhr({ url, init, form, onSent }: Sent): Promise<Response> {
  return new Promise((resolve, reject) => {
    init.signal?.throwIfAborted();
    const xhr = new (globalThis as unknown as { XMLHttpRequest: new () => Xhr }).XMLHttpRequest();
    xhr.open(init.method ?? 'POST', url.href);
    for (const [name, value] of Object.entries(init.headers as Record<string, string>))
      xhr.setRequestHeader(name, value);
    xhr.upload.onprogress = ({ loaded }) => onSent(loaded);
    const abort = (): void => xhr.abort();
    xhr.onloadend = () => {
      init.signal?.removeEventListener('abort', abort);
      if (xhr.status > 0) resolve(toResponse(xhr));
      else reject((init.signal?.reason as Error) ?? new TypeError('Failed to send.'));
    };
    init.signal?.addEventListener('abort', abort);
    xhr.send(form);
  });
}

const NO_BODY: ReadonlySet<number> = new Set([204, 205, 304]);

function toResponse(xhr: Xhr): Response {
  const headers = new Headers();
  for (const line of xhr.getAllResponseHeaders().trim().split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) headers.append(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  const body = NO_BODY.has(xhr.status) ? null : xhr.responseText;
  return new Response(body, { status: xhr.status, headers });
}

function sendAsStream({ url, init, form, onSent }: Sent, fetch: typeof globalThis.fetch): Promise<Response> {
  const encoded = new Response(form);
  let bytes = 0;
  const counting = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      controller.enqueue(chunk);
      bytes += chunk.length;
      onSent(bytes);
    },
  });
  const headers = { ...init.headers, 'Content-Type': encoded.headers.get('content-type')! };
  const body = encoded.body!.pipeThrough(counting);
  // The types of browsers do not know `duplex`, which Node needs to send a stream.
  const streamed: RequestInit & { duplex: 'half' } = { ...init, headers, body, duplex: 'half' };
  return fetch(url, streamed);
}

/** The part of a browser's `XMLHttpRequest` that is used here. */
interface Xhr {
  readonly status: number;
  readonly responseText: string;
  readonly upload: { onprogress: ((event: { loaded: number }) => void) | null };
  onloadend: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getAllResponseHeaders(): string;
  send(form: FormData): void;
  abort(): void;
}
