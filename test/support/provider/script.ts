import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { TEMPLATE_NAMES, templateNamesIn } from './templates.ts';

/** What goes wrong at a provider; what each is on the wire stands with its protocol. */
const errorKind = z.enum([
  'invalid',
  'unauthorized',
  'forbidden',
  'not-found',
  'too-long',
  'rate-limited',
  'no-quota',
  'server-error',
  'overloaded',
]);
export type ErrorKind = z.infer<typeof errorKind>;

const count = z.int().min(0);
const WAYS = [
  ...['status', 'hang', 'hangAfterPieces', 'resetAfterPieces', 'errorEventAfterPieces', 'endWithoutFinish'],
  'html',
];

const failureSchema = z
  .strictObject({
    /** How many requests fail like this. */
    times: z.int().min(1).default(1),
    /** Without a status: the one that the protocol has for it. Of an answer by status, or of the event in mid-stream. */
    error: errorKind.optional(),
    status: z.int().min(400).max(599).optional(),
    headers: z.record(z.string(), z.coerce.string()).default({}),
    /** Of an answer by status, or of the event in mid-stream; by default the protocol's own. */
    body: z.json().optional(),
    /** Never answers. */
    hang: z.literal(true).optional(),
    /** Pieces of thinking, text and tool input are counted. */
    hangAfterPieces: count.optional(),
    resetAfterPieces: count.optional(),
    errorEventAfterPieces: count.optional(),
    /** Says all, but not how it ended. */
    endWithoutFinish: z.literal(true).optional(),
    /** Answers 200 with a page for people. */
    html: z.literal(true).optional(),
  })
  .refine(
    (failure) => {
      const ways = WAYS.filter((way) => way in failure);
      return ways.length === 1 || (ways.length === 0 && failure.error !== undefined);
    },
    { error: `must fail in one way: error or one of ${WAYS.join(', ')}` },
  );
export type Failure = z.infer<typeof failureSchema>;

const toolCallSchema = z
  .strictObject({
    name: z.string(),
    input: z.record(z.string(), z.json()).optional(),
    /** Sent as it is, where it is meant to be broken. */
    rawArguments: z.string().optional(),
  })
  .refine((call) => (call.input === undefined) !== (call.rawArguments === undefined), {
    error: 'must have either input or rawArguments',
  });

const stepSchema = z.strictObject({
  thinking: z.strictObject({ pieces: z.array(z.string()).min(1), signature: z.string().optional() }).optional(),
  text: z.array(z.string()).default([]),
  toolCalls: z.array(toolCallSchema).default([]),
  /** Input counts the cached with it, output the reasoning. */
  usage: z
    .strictObject({
      inputTokens: count.default(10),
      cachedInputTokens: count.default(0),
      outputTokens: count.default(5),
      reasoningTokens: count.default(0),
    })
    .prefault({}),
  /** By default `tool-calls` if there are any, else `stop`. */
  finish: z.enum(['stop', 'tool-calls', 'length', 'content-filter']).optional(),
  /** Before each piece, milliseconds. */
  pauseMs: count.default(0),
  /** What happens to the first requests of this step of a conversation, in this order; the next one is answered. */
  failures: z.array(failureSchema).default([]),
});
export type Step = z.infer<typeof stepSchema>;
export type Finish = NonNullable<Step['finish']>;

const scriptSchema = z.strictObject({ steps: z.array(stepSchema).min(1) }).superRefine((script, context) => {
  for (const name of templateNamesIn(JSON.stringify(script))) {
    if (TEMPLATE_NAMES.includes(name)) continue;
    context.addIssue(`has no value for {{${name}}}, only for ${TEMPLATE_NAMES.join(', ')}`);
  }
});
export type Script = z.infer<typeof scriptSchema>;
export type ScriptInput = z.input<typeof scriptSchema>;

/** @throws Error that names the script and says all that is wrong with it */
export function parseScript(name: string, value: unknown): Script {
  const parsed = scriptSchema.safeParse(value);
  if (!parsed.success) throw new Error(`The script ${name} is wrong:\n${z.prettifyError(parsed.error)}`);
  return parsed.data;
}

function parseYaml(name: string, text: string): unknown {
  try {
    return parse(text);
  } catch (error) {
    throw new Error(`The script ${name} is no YAML: ${(error as Error).message}`, { cause: error });
  }
}

/** All `NAME.yaml` of a folder, by name. */
export function readScripts(folder: string): Map<string, Script> {
  const files = readdirSync(folder).filter((file) => file.endsWith('.yaml'));
  return new Map(
    files.map((file) => {
      const name = basename(file, '.yaml');
      return [name, parseScript(name, parseYaml(name, readFileSync(join(folder, file), 'utf8')))];
    }),
  );
}

/** What happens to the request that is the `index`th (from 0) of its step; undefined if it is answered. */
export function failureAt(failures: readonly Failure[], index: number): Failure | undefined {
  let left = index;
  return failures.find(({ times }) => (left -= times) < 0);
}
