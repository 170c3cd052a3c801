import { PassThrough } from 'node:stream';
import type { AdminOperationName } from '#contract';
import type { AdminClient } from './admin-client.ts';
import { runCli } from './cli.ts';
import type { Streams } from './session.ts';

/** Streams that keep what is written. */
export function streams(): { surroundings: Streams; out: () => string; err: () => string } {
  const [out, err] = [new PassThrough(), new PassThrough()];
  const [written, said] = [collect(out), collect(err)];
  return { surroundings: { out, err }, out: written, err: said };
}

function collect(stream: PassThrough): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  return () => text + String(stream.read() ?? '');
}

/** Answers by operation; a function is given the input. Only for what is about what a command prints. */
export type Script = Partial<Record<AdminOperationName, unknown>>;

export interface Call {
  name: AdminOperationName;
  input: unknown;
}

function scriptedClient(script: Script): { client: AdminClient; calls: Call[] } {
  const calls: Call[] = [];
  const answer = (name: AdminOperationName, input: unknown): unknown => {
    calls.push({ name, input });
    const scripted = script[name];
    if (scripted === undefined) throw new Error(`${name} is not in the script.`);
    return typeof scripted === 'function' ? (scripted as (input: unknown) => unknown)(input) : scripted;
  };
  const client = {
    call: async (name: AdminOperationName, input: unknown) => answer(name, input),
    async *lines(name: AdminOperationName, input: unknown) {
      yield* answer(name, input) as Iterable<unknown>;
    },
    async *bytes(name: AdminOperationName, input: unknown) {
      yield* answer(name, input) as Iterable<Uint8Array>;
    },
    close: async () => undefined,
  };
  return { client: client as AdminClient, calls };
}

/** One call of `spool` in this process. */
export async function run(args: string[], script: Script) {
  const { surroundings, out, err } = streams();
  const { client, calls } = scriptedClient(script);
  const code = await runCli(args, { ...surroundings, env: {}, client });
  return { code, out: out(), err: err(), calls };
}
