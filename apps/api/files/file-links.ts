import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Authenticator, FileLinks, RateLimiter } from '#access';
import type { FileLinkAnswer, operations } from '#contract';
import type { AccessGuard } from '../access-guard.ts';
import type { ApiRequest } from '../http/caller.ts';
import { ApiError, notFound, tokenExpired } from '../http/http-errors.ts';
import { RequestCount } from '../http/limit-rate.ts';
import type { Links } from '../links.ts';
import type { FileSender } from './download.ts';

/** The path of file links. It is outside the API: browsers send no token with `<img>`, so the link itself grants access. */
export const LINK_PATH = 'file-links';

/** Types that browsers show as images and in which nothing can run. SVG can have scripts. */
const SHOWN_INLINE = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp', 'image/avif']);

const HEADERS = {
  'Content-Security-Policy': "default-src 'none'; sandbox",
  // Pages of other origins may show the image.
  'Cross-Origin-Resource-Policy': 'cross-origin',
  // Anyone who has the URL can read the file, so pages that the file opens must not learn it.
  'Referrer-Policy': 'no-referrer',
};

export interface FileLinkServiceOptions {
  access: AccessGuard;
  authenticator: Authenticator;
  fileLinks: FileLinks;
  limiter: RateLimiter;
  links: Links;
  sender: FileSender;
}

/** Creates links to files, and sends the bytes of the files that they name. */
export class FileLinkService {
  constructor(private readonly options: FileLinkServiceOptions) {}

  async create(request: ApiRequest<typeof operations.getFileLink>): Promise<FileLinkAnswer> {
    const { access, fileLinks, links } = this.options;
    const { file } = await access.findVisibleFile(request.caller, request.input.params.fileId);
    if (file.thread_id === null) throw notFound('File');
    if (!fileLinks.isOn) throw new ApiError('browser_tokens_off', 'This installation has no keys for file links.');
    const { token, expiresAt } = await fileLinks.make(file.id, request.caller);
    return { url: links.ofPath(request, `/${LINK_PATH}/${token}`), expiresAt };
  }

  /** Checks at each use that the file exists, and that the caller who created the link may still read it. */
  async send(token: string, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const { access, authenticator, fileLinks, limiter, sender } = this.options;
    const claims = await fileLinks.verify(token);
    const count = new RequestCount(limiter, request, reply);
    const caller = claims === null || claims === 'expired' ? null : await authenticator.findLinkCaller(claims, count);
    await count.add(caller);
    if (claims === 'expired') throw tokenExpired();
    if (claims === null || caller === null) throw notFound('File');
    const { file } = await access.findVisibleFile(caller, claims.fileId);
    const type = file.mime_type !== null && SHOWN_INLINE.has(file.mime_type) ? file.mime_type : undefined;
    void reply.headers(HEADERS);
    await sender.send(file, request, reply, { disposition: type === undefined ? 'attachment' : 'inline', type });
  }
}
