import { hostname, userInfo } from 'node:os';
import { Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { z } from 'zod';
import { ADMIN_HANDLERS, AdminModule, AdminRefused, type Actor, type AdminContext, type AdminHandlers } from '#admin';
import { adminOperations, type AdminOperation, type AdminOperationName } from '#contract';
import { BlobKeeper, BlobMissing, type FileRow } from '#files';
import { createLogger, loadConfig, PlatformModule } from '#platform';
import type { AdminClient, AnswerOf, CallOf, FileOperation } from './admin-client.ts';
import { asCommandError } from './database-errors.ts';
import { CommandError, exitOfCode } from './exit-codes.ts';

/** A command needs one connection at a time; the rest is for what works beside it. */
const CONNECTIONS = 3;

@Module({})
class LocalModule {
  static forRoot(platform: DynamicModule): DynamicModule {
    return { module: LocalModule, imports: [platform, AdminModule] };
  }
}

/** The operations without the API: on the database itself, by the handlers that the API calls. */
export async function openLocalClient(url: string): Promise<AdminClient> {
  const config = { ...loadConfig(process.env), DATABASE_URL: url, DATABASE_POOL_SIZE: CONNECTIONS };
  // What fails is told by the command; standard output is for its result.
  const platform = PlatformModule.forRoot(config, createLogger('silent', 'spool cli'));
  const module = LocalModule.forRoot(platform);
  const context = await NestFactory.createApplicationContext(module, { logger: false, abortOnError: false }).catch(
    (error: unknown) => {
      throw asCommandError(error, url);
    },
  );
  return new LocalClient(context, url);
}

type AnyHandler = (input: unknown, context: AdminContext) => AsyncIterable<unknown> | Promise<unknown>;

class LocalClient implements AdminClient {
  private readonly handlers: AdminHandlers;

  constructor(
    private readonly context: INestApplicationContext,
    private readonly url: string,
  ) {
    this.handlers = context.get<AdminHandlers>(ADMIN_HANDLERS);
  }

  async call<N extends AdminOperationName>(name: N, input?: CallOf<N>): Promise<AnswerOf<N>> {
    try {
      return (await this.begin(name, input)) as AnswerOf<N>;
    } catch (error) {
      throw this.readable(error);
    }
  }

  async *lines<N extends AdminOperationName>(
    name: N,
    input?: CallOf<N>,
    signal?: AbortSignal,
  ): AsyncGenerator<AnswerOf<N>, void, undefined> {
    try {
      yield* this.begin(name, input, signal) as AsyncIterable<AnswerOf<N>>;
    } catch (error) {
      throw this.readable(error);
    }
  }

  async *bytes(name: FileOperation, input: CallOf<FileOperation>): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      const { blob_key } = (await this.begin(name, input)) as FileRow;
      yield* (await this.context.get(BlobKeeper, { strict: false }).get(blob_key)) as AsyncIterable<Uint8Array>;
    } catch (error) {
      if (!(error instanceof BlobMissing)) throw this.readable(error);
      throw new CommandError(
        'conflict',
        'The blob store does not have these bytes. Retry in case the file was replaced, then check BLOB_URL.',
      );
    }
  }

  close(): Promise<void> {
    return this.context.close();
  }

  private begin(name: AdminOperationName, input: Given = {}, signal = new AbortController().signal) {
    const { params, query, body }: AdminOperation = adminOperations[name];
    const parsed = {
      params: parse(params, input.params ?? {}),
      query: parse(query, input.query ?? {}),
      body: body === null ? undefined : parse(body, input.body),
    };
    return (this.handlers[name] as AnyHandler)(parsed, { actor: whoIsHere(), holder: null, signal });
  }

  private readable(error: unknown): unknown {
    if (error instanceof AdminRefused) return new CommandError(exitOfCode(error.code), error.message);
    return asCommandError(error, this.url);
  }
}

interface Given {
  params?: object;
  query?: object;
  body?: unknown;
}

function parse(schema: z.ZodType, value: unknown): unknown {
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const issues = error.issues.map(({ path, message }) => [path.join('.'), message].filter(Boolean).join(': '));
  throw new CommandError('usage', issues.join('; '));
}

function whoIsHere(): Actor {
  const name = userName();
  return { kind: 'local', id: `${name}@${hostname()}`, name };
}

/** A container may run under a number that has no name there. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid-${process.getuid?.()}`;
  }
}
