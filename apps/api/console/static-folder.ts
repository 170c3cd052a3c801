import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { FastifyReply, FastifyRequest } from 'fastify';
import mime from 'mime';
import { preferredEncoding, type Encoding } from '../http/content-encoding.ts';

const ENCODERS: Record<Encoding, (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) => promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }),
  gzip: (bytes) => promisify(gzip)(bytes),
};

/** What is text is worth compressing, except what fits into a packet or two. */
const COMPRESSIBLE = /^(text\/|application\/(json|javascript)|image\/svg)/;
const COMPRESSED_FROM_BYTES = 2_000;

interface StaticFile {
  bytes: Buffer;
  etag: string;
  type: string;
}

/**
 * The files below a folder, as they were when it was first asked: a name that is not among them is not found, whatever is on
 * the disk. Each is read, and compressed, when it is first asked for, and kept.
 */
export class StaticFolder {
  private readonly made = new Map<string, Promise<unknown>>();

  constructor(
    private readonly folder: string,
    /** Names that have another content never: those with a hash in them. */
    private readonly isImmutable: (name: string) => boolean,
  ) {}

  /** By its path below the folder, with `/` between. */
  async has(name: string): Promise<boolean> {
    return (await this.once('', () => namesIn(this.folder))).has(name);
  }

  /** Only for a name that it has. */
  async read(name: string): Promise<StaticFile> {
    return this.once(name, async () => {
      const bytes = await readFile(join(this.folder, ...name.split('/')));
      const type = mime.getType(name) ?? 'application/octet-stream';
      const etag = createHash('sha256').update(bytes).digest('base64url');
      return { bytes, etag, type: type.startsWith('text/') ? `${type}; charset=utf-8` : type };
    });
  }

  /** Whether there was such a file; nothing is sent otherwise. */
  async send(name: string, { headers }: FastifyRequest, reply: FastifyReply): Promise<boolean> {
    if (!(await this.has(name))) return false;
    const file = await this.read(name);
    const isCompressible = file.bytes.length >= COMPRESSED_FROM_BYTES && COMPRESSIBLE.test(file.type);
    const encoding = isCompressible ? preferredEncoding(headers) : null;
    const etag = `"${file.etag}${encoding === null ? '' : `-${encoding}`}"`;
    void reply.headers({
      ETag: etag,
      'Cache-Control': this.isImmutable(name) ? 'public, max-age=31536000, immutable' : 'no-cache',
      'X-Content-Type-Options': 'nosniff',
      Vary: 'Accept-Encoding',
    });
    // A tag is quoted and a hash: what has it anywhere in its list has it.
    if (String(headers['if-none-match'] ?? '').includes(etag)) {
      await reply.code(304).send();
      return true;
    }
    const bytes =
      encoding === null ? file.bytes : await this.once(`${name} ${encoding}`, () => ENCODERS[encoding](file.bytes));
    if (encoding !== null) void reply.header('Content-Encoding', encoding);
    await reply.type(file.type).send(bytes);
    return true;
  }

  private async once<T>(key: string, make: () => Promise<T>): Promise<T> {
    const made = (this.made.get(key) as Promise<T> | undefined) ?? make();
    this.made.set(key, made);
    // What could not be read now may be another time.
    made.catch(() => this.made.delete(key));
    return made;
  }
}

/** None where there is no folder. What else keeps it from being read may be over the next time. */
async function namesIn(folder: string): Promise<ReadonlySet<string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  });
  const files = entries.filter((entry) => entry.isFile());
  return new Set(files.map((file) => relative(folder, join(file.parentPath, file.name)).split(sep).join('/')));
}
