import { Controller, Header, Inject, Req, Res } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import {
  operations,
  type FileLinkAnswer,
  type ListFilesAnswer,
  type OkAnswer,
  type PublicFileAnswer,
  type ThreadFileAnswer,
} from '#contract';
import type { ApiRequest } from '../http/caller.ts';
import { BASE_PATH, Endpoint } from '../http/endpoint.ts';
import { DownloadService } from '../files/download.ts';
import { FileLinkService } from '../files/file-links.ts';
import { FileService } from '../files/file-service.ts';
import { sendAnswer } from '../idempotency.ts';

@Controller(BASE_PATH)
export class FilesController {
  constructor(
    @Inject(FileService) private readonly files: FileService,
    @Inject(DownloadService) private readonly downloads: DownloadService,
    @Inject(FileLinkService) private readonly links: FileLinkService,
  ) {}

  @Endpoint(operations.uploadFile)
  async uploadFile(
    @Req() request: ApiRequest<typeof operations.uploadFile>,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    sendAnswer(reply, await this.files.uploadFile(request));
  }

  @Endpoint(operations.attachFile)
  attachFile(@Req() request: ApiRequest<typeof operations.attachFile>): Promise<ThreadFileAnswer> {
    return this.files.attachFile(request);
  }

  @Endpoint(operations.listFiles)
  listFiles(@Req() request: ApiRequest<typeof operations.listFiles>): Promise<ListFilesAnswer> {
    return this.files.listFiles(request);
  }

  @Endpoint(operations.detachFile)
  detachFile(@Req() request: ApiRequest<typeof operations.detachFile>): Promise<OkAnswer> {
    return this.files.detachFile(request);
  }

  @Endpoint(operations.getFile)
  getFile(@Req() request: ApiRequest<typeof operations.getFile>): Promise<PublicFileAnswer> {
    return this.files.getFile(request);
  }

  @Endpoint(operations.deleteFile)
  deleteFile(@Req() request: ApiRequest<typeof operations.deleteFile>): Promise<OkAnswer> {
    return this.files.deleteFile(request);
  }

  @Endpoint(operations.readContent)
  readContent(@Req() request: ApiRequest<typeof operations.readContent>, @Res() reply: FastifyReply): Promise<void> {
    return this.downloads.sendContent(request, reply);
  }

  @Endpoint(operations.getFileLink)
  @Header('Cache-Control', 'no-store')
  getFileLink(@Req() request: ApiRequest<typeof operations.getFileLink>): Promise<FileLinkAnswer> {
    return this.links.create(request);
  }
}
